// How messages of a ring travel over its paths: routes, tags and headers.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "wan/net/path.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {

// The shorter way around the ring, to the right where both are equally long. A message to all sites goes both ways, to
// one half of the sites each.
struct Routes {
  int count, me;
  int right() const { return (me + 1) % count; }
  int left() const { return (me + count - 1) % count; }
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
  enum Kind : std::uint32_t { kLost = 1, kRefused = 2 };
};

}  // namespace maki::sites
