// Messages between the gateways of sites that form a ring (SUSHI, section 2.1; docs/design.md, "Many sites"), and how
// they travel over its paths. Only the first rank of a site's job has a ring.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/error.hpp"
#include "wan/net/error.hpp"
#include "wan/net/path.hpp"

namespace maki::sites {

// Purposes of messages. Messages of one phase from one site arrive in the order of their numbers; phases do not wait
// for one another.
enum class Phase : std::uint8_t {
  kSums,       // sums of a step by which steps, rebuilds and boundaries are decided
  kMesh,       // densities
  kTrees,      // local essential trees
  kParticles,  // particles that change their site
  kOutput,     // snapshots, spectra and energies
  kControl,    // beginning and end of a run
};
inline constexpr std::size_t kPhases = 6;
inline const char* name(Phase phase) {
  constexpr const char* names[] = {"sums", "mesh", "trees", "particles", "output", "control"};
  return names[static_cast<std::size_t>(phase)];
}

using Message = std::vector<std::byte>;
inline constexpr double kLeaveAfter = 30;                               // seconds (Ring::leave_when())
inline constexpr std::size_t kLongestMessage = std::size_t{128} << 20;  // bytes; parts of ranks travel in pieces

// Thrown where a site does not answer any more: its path is down for longer than the settings allow, or it has left
// because another site is lost. Later calls throw it too, once messages that had come are taken. The run then ends.
class SiteLost : public Error {
 public:
  using Error::Error;
};

// Traffic of this site in one phase, since the last take_traffic().
struct Traffic {
  std::uint64_t messages_sent = 0, bytes_sent = 0;  // without messages that it passes on
  std::uint64_t messages_received = 0, bytes_received = 0;
  std::uint64_t bytes_passed_on = 0;  // of other sites' messages
  std::uint64_t waits = 0;            // calls of receive() whose message had not arrived
  double waited = 0;                  // seconds spent in them
};

class Ring {
 public:
  virtual ~Ring() = default;
  virtual int count() const = 0;  // sites
  virtual int me() const = 0;     // place in the ring, 0 to count - 1

  // send() and publish() return at once. Messages take the shorter way around the ring; sites in between pass them on.
  // `number` rises from message to message of a phase between the same two sites. Throw SiteLost.
  virtual void send(int to, Phase phase, std::uint64_t number, Message message) = 0;
  // To all others, over each link of the ring at most once.
  virtual void publish(Phase phase, std::uint64_t number, Message message) = 0;
  // Waits for the next message of the phase from the site, sent or published. Throws SiteLost, and Error where it has
  // another number: then the sites are not in step.
  virtual Message receive(int from, Phase phase, std::uint64_t number) = 0;

  // While receive() and close() wait they call `asked` once a second: whether this site is to end. If so they throw
  // SiteLost where the path of a neighbour that has not closed is down, and where they have waited longer than the
  // paths' patience or kLeaveAfter, whichever is less, and than twice any earlier wait for messages of the phase. Not
  // called while another thread is in receive() or close().
  virtual void leave_when(std::function<bool()>) {}

  // Limit of the bytes of received messages that this site holds (RingPlan::memory_limit).
  virtual std::size_t memory_limit() const { return SIZE_MAX; }

  // The traffic by phase; counting begins anew.
  virtual std::array<Traffic, kPhases> take_traffic() = 0;
  // A regular end: waits until all sent messages have arrived; the other sites do not take it for a loss.
  virtual void close() = 0;
};

// The result of `call`. A wan::Error of wan/net, which is a library of its own, is thrown on as the application's
// Error: as describe(its text), or else with the text alone.
template <class Call, class Describe>
decltype(auto) translate_errors(Call&& call, Describe&& describe) {
  try {
    return std::forward<Call>(call)();
  } catch (const wan::Error& error) {
    throw describe(error.what());
  }
}
template <class Call>
decltype(auto) translate_errors(Call&& call) {
  return translate_errors(std::forward<Call>(call), [](const std::string& text) { return Error(text); });
}

// ---- on paths: routes, tags and headers ----------------------------------------------------------------------------

// The shorter way around the ring, to the right where both are equally long. A message to all sites goes both ways, to
// one half of the sites each.
struct Routes {
  int count, me;
  int reach_right() const { return count / 2; }  // number of sites that are reached to the right
  int reach_left() const { return count - 1 - count / 2; }
  bool goes_right(int to) const { return (to - me + count) % count <= reach_right(); }
  int last_right() const { return (me + reach_right()) % count; }
  int last_left() const { return (me + count - reach_left()) % count; }
  // Whether a message from `origin` to `last` ends at or passes this site.
  bool passes(int origin, int last) const {
    const int here = (me - origin + count) % count, end = (last - origin + count) % count;
    return here <= reach_right() ? here <= end && end <= reach_right() : end <= here && count - end <= reach_left();
  }
};

// One tag for each origin and phase: on a path messages of one tag keep their order, and different tags do not wait for
// one another. The messages needed soonest are the most urgent.
inline constexpr wan::Tag kHelloTag = 1;
inline constexpr wan::Tag kNoticeTag = wan::urgent(2, wan::kMostUrgent);
inline constexpr wan::Tag kCheckTag = 3;
inline wan::Tag tag_of(int origin, Phase phase) {
  constexpr int urgency[kPhases] = {4, 1, 2, 3, 0, 5};  // sums, mesh, trees, particles, output, control
  const auto which = static_cast<std::size_t>(phase);
  return wan::urgent(1000 + static_cast<wan::Tag>(origin) * 16 + which, urgency[which]);
}

inline constexpr std::size_t kSmallPiece = 16 << 10;  // messages of this size go before longer ones on a path
inline constexpr std::size_t kPieceBytes = 4 << 20;   // long messages travel in pieces, which are passed on one by one

// Precedes each message. A message that fits into a small piece is in the same path message as its header; a longer one
// follows in pieces, each of which is a path message.
struct Header {
  enum Kind : std::uint32_t { kMessage = 0x676e6952, kEnd = 0x646e6552 };
  std::uint32_t kind = kMessage;
  std::uint16_t last = 0;    // destination
  std::uint16_t to_all = 0;  // 1: also for the sites that it passes
  std::uint64_t number = 0, bytes = 0, piece = 0;

  bool inlined() const { return bytes <= kSmallPiece - sizeof(Header); }
};
static_assert(sizeof(Header) == 32);

// Empty where the bytes are no header: then another program is at the other end, or a program is broken.
inline std::optional<Header> header_of(std::span<const std::byte> bytes, int sites) {
  Header header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool known = header.kind == Header::kMessage || header.kind == Header::kEnd;
  const bool fits = header.inlined() ? bytes.size() == sizeof header + header.bytes
                                     : bytes.size() == sizeof header && header.bytes <= kLongestMessage &&
                                           header.piece >= kSmallPiece && header.piece <= kLongestMessage;
  if (!known || !fits || header.last >= sites) return std::nullopt;
  return header;
}

// Why the run ends, sent to the neighbours.
struct Notice {
  // kTurnedAway: the run goes on, without the receiver, which is no part of it.
  enum Kind : std::uint32_t { kLost = 1, kRefused = 2, kTurnedAway = 3 };
};

}  // namespace maki::sites
