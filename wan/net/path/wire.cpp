#include "wan/net/path/wire.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cmath>
#include <iterator>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan {
namespace {

constexpr std::uint64_t kHelloMagic = 0x314f4c4c484b414d;    // "MAKHLLO1"
constexpr std::uint64_t kWelcomeMagic = 0x31434c57484b414d;  // "MAKHWLC1"
constexpr std::uint16_t kFrameMagic = 0x464d;                // "MF"
constexpr std::size_t kCheckBytes = 8;                       // XXH3 of all before it, at the end of each of the three
constexpr std::size_t kNameBytes = 63;
constexpr std::size_t kReasonBytes = 95;

// All fields but magic and version.
template <class Io>
void fields(Io& io, Of<Io, Hello>& hello) {
  io.field(hello.stream);
  io.field(hello.session);
  io.field(hello.epoch);
  io.field(hello.streams);
  io.field(hello.unmatched_limit);
  io.field(hello.message_limit);
  io.field(hello.patience);
  io.padded(hello.name, kNameBytes);
  io.field(hello.party);
  io.field(hello.own_machine);
}

template <class Io>
void fields(Io& io, Of<Io, Welcome>& welcome) {
  io.field(welcome.answer);
  io.field(welcome.session);
  io.field(welcome.unmatched_limit);
  io.field(welcome.message_limit);
  io.field(welcome.patience);
  io.padded(welcome.reason, kReasonBytes);
  io.field(welcome.party);
}

template <class Io>
void fields(Io& io, Of<Io, Frame>& frame) {
  io.field(frame.type);
  io.field(frame.length);
  io.field(frame.sequence);
  io.field(frame.tag);
  io.field(frame.index);
  io.field(frame.total);
  io.field(frame.offset);
  io.field(frame.checksum);
}

template <std::size_t size>
std::array<std::byte, size> sealed(ByteWriter& out) {
  out.fill(size - kCheckBytes);
  out.put(checksum(out.bytes()));
  return block<size>(out.bytes());
}

// The bytes before the checksum.
template <std::size_t size>
ByteReader reader(std::span<const std::byte, size> block, const char* what, const char* wrong) {
  return {block.first(size - kCheckBytes), what, wrong};
}

template <std::size_t size>
void check_seal(std::span<const std::byte, size> block, const ByteReader& in) {
  const auto check = ByteReader(block.last(kCheckBytes), "", "").number<std::uint64_t>();
  if (check != checksum(block.first(size - kCheckBytes))) in.fail("the checksum of its header is wrong");
}

// Each returns the error, or an empty text. The same rules for sent and received messages.
std::string fault_of(const Hello& hello) {
  if (hello.stream >= kMaxStreams) return fmt::format("stream number {}, at most {}", hello.stream, kMaxStreams - 1);
  if (hello.streams < 1 || hello.streams > kMaxStreams)
    return fmt::format("{} streams, 1 to {}", hello.streams, kMaxStreams);
  if (!std::isfinite(hello.patience) || hello.patience < 0) return "patience is not a time";
  return fault_of_name(hello.name);
}

std::string fault_of(const Welcome& welcome) {
  if (static_cast<std::uint32_t>(welcome.answer) > static_cast<std::uint32_t>(Answer::kRefused))
    return "an answer that does not exist";
  if (welcome.answer == Answer::kWelcome && welcome.session == SessionId{}) return "a welcome without a session id";
  if (!std::isfinite(welcome.patience) || welcome.patience < 0) return "patience is not a time";
  if (welcome.reason.size() > kReasonBytes || printable(welcome.reason) != welcome.reason)
    return "a reason that is not a short text";
  return {};
}

std::string fault_of_data(const Frame& frame) {
  if (frame.length > kMaxPayload) return fmt::format("a chunk of {} bytes, at most {}", frame.length, kMaxPayload);
  if (frame.offset > frame.total || frame.length > frame.total - frame.offset)
    return fmt::format("{} bytes at {} of a message of {}", frame.length, frame.offset, frame.total);
  return {};
}

std::string fault_of(const Frame& frame) {
  if (frame.sequenced() && frame.sequence == 0) return "a sequenced frame without its number";
  switch (frame.type) {
    case FrameType::kData: return fault_of_data(frame);
    case FrameType::kMatched:
    case FrameType::kPing:
    case FrameType::kPong:
      return frame.length == 0 ? std::string{} : fmt::format("a payload of {} bytes where there is none", frame.length);
    case FrameType::kAck:
    case FrameType::kGoodbye:
      return frame.length <= kMaxControl ? std::string{}
                                         : fmt::format("{} bytes, at most {}", frame.length, kMaxControl);
  }
  return fmt::format("type {} does not exist", static_cast<int>(frame.type));
}

void refuse(const char* what, const std::string& fault) {
  if (!fault.empty()) throw Error(fmt::format("cannot send a {}", what), fault);
}

// The fields after magic and version.
template <class Message>
void read_rest(ByteReader& in, Message& message) {
  fields(in, message);
  in.zeros(in.left(), "bytes that have no meaning are set");
  if (const std::string fault = fault_of(message); !fault.empty()) in.fail(fault);
}

// A Hello or Welcome.
template <class Message, std::size_t size>
Message greeting_in(std::span<const std::byte, size> bytes, ByteReader in, std::uint64_t magic) {
  if (in.number<std::uint64_t>() != magic) in.fail("the other side speaks something else");
  Message message;
  in.field(message.version);
  if (message.version != kProtocolVersion) return message;
  check_seal(bytes, in);
  read_rest(in, message);
  return message;
}

}  // namespace

std::array<std::byte, kHelloBytes> encode(const Hello& hello) {
  refuse("greeting", fault_of(hello));
  ByteWriter out(kHelloBytes);
  out.put(kHelloMagic);
  out.put(hello.version);
  fields(out, hello);
  return sealed<kHelloBytes>(out);
}

Hello decode_hello(std::span<const std::byte, kHelloBytes> bytes) {
  const ByteReader in = reader(bytes, "a greeting of a path", "not a greeting of a path");
  if (bytes[0] == std::byte{0x16} && bytes[1] == std::byte{3})
    in.fail("the other side speaks TLS, and this side is insecure");
  return greeting_in<Hello>(bytes, in, kHelloMagic);
}

std::array<std::byte, kWelcomeBytes> encode(const Welcome& welcome) {
  Welcome sent = welcome;
  sent.reason = printable(welcome.reason, kReasonBytes);  // any kind of text: made to fit rather than refused
  refuse("welcome", fault_of(sent));
  ByteWriter out(kWelcomeBytes);
  out.put(kWelcomeMagic);
  out.put(sent.version);
  fields(out, sent);
  return sealed<kWelcomeBytes>(out);
}

Welcome decode_welcome(std::span<const std::byte, kWelcomeBytes> bytes) {
  return greeting_in<Welcome>(bytes, reader(bytes, "a welcome of a path", "not a welcome of a path"), kWelcomeMagic);
}

std::array<std::byte, kFrameBytes> encode(const Frame& frame) {
  refuse("frame", fault_of(frame));
  ByteWriter out(kFrameBytes);
  out.put(kFrameMagic);
  fields(out, frame);
  return sealed<kFrameBytes>(out);
}

Frame decode_frame(std::span<const std::byte, kFrameBytes> bytes) {
  ByteReader in = reader(bytes, "a frame of a path", "not a frame of a path");
  if (in.number<std::uint16_t>() != kFrameMagic) in.fail("it begins with other bytes");
  check_seal(bytes, in);
  Frame frame;
  read_rest(in, frame);
  return frame;
}

std::string fault_of_name(const std::string& name) {
  if (name.size() > kNameBytes) return fmt::format("a name of {} bytes, at most {}", name.size(), kNameBytes);
  if (printable(name) != name) return "control characters in the name";
  return {};
}

std::uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// ---- ranges --------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kMostRanges = 1 << 18;  // far more than so many streams can leave open

}  // namespace

bool Ranges::overlaps(std::uint64_t first, std::uint64_t last) const {
  const auto after = map_.upper_bound(last);
  return after != map_.begin() && std::prev(after)->second >= first;
}

void Ranges::add(std::uint64_t first, std::uint64_t last) {
  const auto after = map_.upper_bound(first);
  const bool joins_after = after != map_.end() && after->first - 1 == last;
  const bool joins_before = after != map_.begin() && std::prev(after)->second + 1 == first;
  const std::uint64_t end = joins_after ? after->second : last;
  if (joins_before) {
    std::prev(after)->second = end;
    if (joins_after) map_.erase(after);
    return;
  }
  if (!joins_after && map_.size() >= kMostRanges) throw ProtocolError("What comes in leaves too many gaps");
  const auto hint = joins_after ? map_.erase(after) : after;
  map_.emplace_hint(hint, first, end);
}

// ---- sequence numbers ----------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

}  // namespace

bool ReceivedSet::contains(std::uint64_t sequence) const {
  return sequence <= all_up_to_ || ranges_.overlaps(sequence, sequence);
}

bool ReceivedSet::add(std::uint64_t sequence) {
  if (contains(sequence)) return false;
  ranges_.add(sequence, sequence);
  if (const auto first = ranges().begin(); first->first == all_up_to_ + 1) {
    all_up_to_ = first->second;
    ranges_.remove_first();
  }
  return true;
}

std::vector<std::byte> ReceivedSet::encode(std::size_t limit) const {
  ByteWriter out;
  out.put(all_up_to_);
  for (const auto& [first, last] : ranges()) {
    if (out.bytes().size() + 2 * kWord > limit) break;
    out.put(first);
    out.put(last);
  }
  return out.take();
}

ReceivedSet ReceivedSet::decode(std::span<const std::byte> bytes) {
  if (bytes.size() < kWord || bytes.size() % (2 * kWord) != kWord)
    throw ProtocolError("An acknowledgement has an impossible size");
  ByteReader in(bytes, "An acknowledgement", "An acknowledgement makes no sense");
  ReceivedSet set;
  set.all_up_to_ = in.number<std::uint64_t>();
  std::uint64_t before = set.all_up_to_;
  while (in.left() > 0) {
    const auto first = in.number<std::uint64_t>(), last = in.number<std::uint64_t>();
    if (first <= before || first - before < 2 || last < first)
      throw ProtocolError("An acknowledgement has ranges that overlap or stand in the wrong order");
    set.ranges_.add(first, last);
    before = last;
  }
  return set;
}

}  // namespace maki::wan
