// The wire format of a stream: a bounded greeting each way, then frames of a fixed header and a payload. Little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/secure/key.hpp"

namespace maki::wan {

inline constexpr std::uint32_t kProtocolVersion = 4;
inline constexpr std::size_t kHelloBytes = 192;
inline constexpr std::size_t kWelcomeBytes = 192;
inline constexpr std::size_t kFrameBytes = 64;
inline constexpr std::size_t kMaxPayload = 4 << 20;   // of a data frame
inline constexpr std::size_t kMaxControl = 64 << 10;  // of any other frame
// Bytes that a chunk counts beyond its own while its receive is not posted.
inline constexpr std::size_t kUnmatchedCost = 512;

using SessionId = std::array<std::byte, 16>;

// First message of the connecting side. `session` is zero for a new path.
struct Hello {
  std::uint32_t version = kProtocolVersion;
  SessionId session{};
  std::uint32_t stream = 0;   // number within the path
  std::uint32_t epoch = 0;    // of that stream: increases with each connection
  std::uint32_t streams = 1;  // of the path
  std::uint64_t unmatched_limit = 0;
  std::uint64_t message_limit = 0;
  double patience = 0;
  std::string name;          // at most 63 bytes, printable
  Party party{};             // of the caller
  bool own_machine = false;  // the caller, whose Party is its machine, has dialled an address of that very machine
  bool is_new() const { return session == SessionId{}; }
  bool operator==(const Hello&) const = default;
};

enum class Answer : std::uint32_t {
  kWelcome = 0,
  kUnknownSession = 1,  // no such session, or not of this peer: final
  kBusy = 2,            // too many sessions: try later
  kVersion = 3,         // another protocol version: final
  kStale = 4,           // this stream has reconnected since: a later epoch is in use
  kRefused = 5,         // final; `reason` says why
};

struct Welcome {
  Answer answer = Answer::kWelcome;
  std::uint32_t version = kProtocolVersion;
  SessionId session{};
  std::uint64_t unmatched_limit = 0;
  std::uint64_t message_limit = 0;
  double patience = 0;
  std::string reason;  // at most 95 bytes, printable
  Party party{};       // of the answering side
  bool operator==(const Welcome&) const = default;
};

enum class FrameType : std::uint16_t {
  kData = 1,     // a chunk of a message. Sequenced.
  kMatched = 2,  // the receive of (tag, index) is posted: send all of it. Sequenced.
  kAck = 4,      // payload: the sequence numbers received (ReceivedSet)
  kPing = 5,     // sequence: any number; kPong returns it
  kPong = 6,
  kGoodbye = 8,  // the path ends; payload: the reason as text (empty: orderly)
};

struct Frame {
  FrameType type = FrameType::kPing;
  std::uint32_t length = 0;             // of the payload
  std::uint64_t sequence = 0;           // of sequenced frames: 1, 2, ... over the whole path
  std::uint64_t tag = 0, index = 0;     // the message: index-th of its tag, from 0
  std::uint64_t total = 0, offset = 0;  // bytes of the message, and the offset of this chunk
  std::uint64_t checksum = 0;           // XXH3 of the payload; 0 under TLS
  bool sequenced() const { return type == FrameType::kData || type == FrameType::kMatched; }
  bool operator==(const Frame&) const = default;
};

std::array<std::byte, kHelloBytes> encode(const Hello& hello);
std::array<std::byte, kWelcomeBytes> encode(const Welcome& welcome);
std::array<std::byte, kFrameBytes> encode(const Frame& frame);

// Throw ProtocolError for anything that encode() cannot have produced: magic, sizes, ranges, header checksum. A Hello
// or Welcome of another version is decoded only up to its version field (the rest keeps its defaults).
Hello decode_hello(std::span<const std::byte, kHelloBytes> bytes);
Welcome decode_welcome(std::span<const std::byte, kWelcomeBytes> bytes);
Frame decode_frame(std::span<const std::byte, kFrameBytes> bytes);

std::string fault_of_name(const std::string& name);  // of a caller; empty: none

std::uint64_t checksum(std::span<const std::byte> bytes);

// ---- acknowledgements: the sequence numbers received ---------------------------------------------------------------

// Numbers as ranges that neither overlap nor touch.
class Ranges {
 public:
  using Map = std::map<std::uint64_t, std::uint64_t>;  // first -> last

  bool overlaps(std::uint64_t first, std::uint64_t last) const;
  // Adds new numbers, merged with adjacent ranges. Throws ProtocolError if there would be more ranges than any order of
  // arrival can leave.
  void add(std::uint64_t first, std::uint64_t last);
  void remove_first() { map_.erase(map_.begin()); }

  const Map& map() const { return map_; }

 private:
  Map map_;
};

// The sequence numbers received: all up to one, and ranges beyond it. Also the contents of an acknowledgement.
class ReceivedSet {
 public:
  bool add(std::uint64_t sequence);  // false for a duplicate
  bool contains(std::uint64_t sequence) const;
  std::uint64_t all_up_to() const { return all_up_to_; }
  const Ranges::Map& ranges() const { return ranges_.map(); }  // first -> last, beyond all_up_to

  // Payload of a kAck frame, at most `limit` bytes. The highest ranges are left out if necessary, for a later frame.
  std::vector<std::byte> encode(std::size_t limit) const;
  // Throws ProtocolError for what encode() cannot have produced.
  static ReceivedSet decode(std::span<const std::byte> bytes);

 private:
  std::uint64_t all_up_to_ = 0;
  Ranges ranges_;
};

}  // namespace maki::wan
