#include "wan/net/path/wire.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cmath>

#include "wan/net/byte_codec.hpp"
#include "wan/net/log.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan {
namespace {

constexpr std::uint64_t kHelloMagic = 0x314f4c4c484b414d;    // "MAKHLLO1"
constexpr std::uint64_t kWelcomeMagic = 0x31434c57484b414d;  // "MAKHWLC1"
constexpr std::uint16_t kFrameMagic = 0x464d;                // "MF"
constexpr std::size_t kCheckBytes = 8;                       // XXH3 of all that stands before it ends each of the three
constexpr std::size_t kNameBytes = 63;
constexpr std::size_t kReasonBytes = 95;

// A text in a field of `room` bytes, its length before it.
void put_field(ByteWriter& out, const std::string& text, std::size_t room) {
  const std::size_t end = out.bytes().size() + 1 + room;
  out.put_text<std::uint8_t>(text, room);
  out.fill(end);
}

std::string field(ByteReader& in, std::size_t room) {
  const std::string text = in.text<std::uint8_t>(room, "a text longer than its field");
  in.zeros(room - text.size(), "bytes behind the end of a text");
  return text;
}

template <std::size_t size>
std::array<std::byte, size> sealed(ByteWriter& out) {
  out.fill(size - kCheckBytes);
  out.put(checksum(out.bytes()));
  return block<size>(out.bytes());
}

// What stands before the checksum.
template <std::size_t size>
ByteReader reader(std::span<const std::byte, size> block, const char* what, const char* wrong) {
  return {block.first(size - kCheckBytes), what, wrong};
}

template <std::size_t size>
void check_seal(std::span<const std::byte, size> block, const ByteReader& in) {
  const auto check = ByteReader(block.last(kCheckBytes), "", "").number<std::uint64_t>();
  if (check != checksum(block.first(size - kCheckBytes))) in.fail("the checksum of its header is wrong");
}

void check_rest_is_zero(ByteReader& in) { in.zeros(in.left(), "bytes that have no meaning are set"); }

// Each returns what is wrong, or nothing. The same rules hold for what is sent and for what has come.
std::string fault_of(const Hello& hello) {
  if (hello.stream >= kMaxStreams) return fmt::format("stream number {}, at most {}", hello.stream, kMaxStreams - 1);
  if (hello.streams < 1 || hello.streams > kMaxStreams)
    return fmt::format("{} streams, 1 to {}", hello.streams, kMaxStreams);
  if (!std::isfinite(hello.patience) || hello.patience < 0) return "patience is not a time";
  if (hello.name.size() > kNameBytes)
    return fmt::format("a name of {} bytes, at most {}", hello.name.size(), kNameBytes);
  if (printable(hello.name) != hello.name) return "control characters in the name";
  return {};
}

std::string fault_of(const Welcome& welcome) {
  if (static_cast<std::uint32_t>(welcome.answer) > static_cast<std::uint32_t>(Answer::kRefused))
    return "an answer that does not exist";
  if (welcome.answer == Answer::kWelcome && welcome.session == SessionId{}) return "a welcome without a session id";
  if (welcome.streams < 1 || welcome.streams > kMaxStreams)
    return fmt::format("{} streams, 1 to {}", welcome.streams, kMaxStreams);
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
    case FrameType::kStreams:
      if (frame.total < 1 || frame.total > static_cast<std::uint64_t>(kMaxStreams))
        return fmt::format("{} streams, 1 to {}", frame.total, kMaxStreams);
      [[fallthrough]];
    case FrameType::kMatched:
    case FrameType::kPing:
    case FrameType::kPong:
    case FrameType::kRetire:
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

}  // namespace

std::array<std::byte, kHelloBytes> encode(const Hello& hello) {
  refuse("greeting", fault_of(hello));
  ByteWriter out(kHelloBytes);
  out.put(kHelloMagic);
  out.put(hello.version);
  out.put(hello.stream);
  out.put_bytes(hello.session);
  out.put(hello.epoch);
  out.put(hello.streams);
  out.put(hello.unmatched_limit);
  out.put(hello.message_limit);
  out.put(hello.patience);
  put_field(out, hello.name, kNameBytes);
  out.put_bytes(hello.party);
  out.put(static_cast<std::uint32_t>(hello.own_machine));
  return sealed<kHelloBytes>(out);
}

Hello decode_hello(std::span<const std::byte, kHelloBytes> bytes) {
  ByteReader in = reader(bytes, "a greeting of a path", "not a greeting of a path");
  if (bytes[0] == std::byte{0x16} && bytes[1] == std::byte{3})
    in.fail("the other side speaks TLS, and this side is insecure");
  if (in.number<std::uint64_t>() != kHelloMagic) in.fail("the other side speaks something else");
  Hello hello;
  hello.version = in.number<std::uint32_t>();
  if (hello.version != kProtocolVersion) return hello;
  check_seal(bytes, in);
  hello.stream = in.number<std::uint32_t>();
  hello.session = in.array<sizeof(SessionId)>();
  hello.epoch = in.number<std::uint32_t>();
  hello.streams = in.number<std::uint32_t>();
  hello.unmatched_limit = in.number<std::uint64_t>();
  hello.message_limit = in.number<std::uint64_t>();
  hello.patience = in.number<double>();
  hello.name = field(in, kNameBytes);
  hello.party = in.array<sizeof(Party)>();
  hello.own_machine = in.number<std::uint32_t>(1, "a switch that is neither off nor on") == 1;
  check_rest_is_zero(in);
  if (const std::string fault = fault_of(hello); !fault.empty()) in.fail(fault);
  return hello;
}

std::array<std::byte, kWelcomeBytes> encode(const Welcome& welcome) {
  Welcome sent = welcome;
  sent.reason =
      printable(welcome.reason, kReasonBytes);  // of messages of any kind: it is made to fit rather than refused
  refuse("welcome", fault_of(sent));
  ByteWriter out(kWelcomeBytes);
  out.put(kWelcomeMagic);
  out.put(sent.version);
  out.put(sent.answer);
  out.put_bytes(sent.session);
  out.put(sent.streams);
  out.put(sent.unmatched_limit);
  out.put(sent.message_limit);
  out.put(sent.patience);
  put_field(out, sent.reason, kReasonBytes);
  out.put_bytes(sent.party);
  return sealed<kWelcomeBytes>(out);
}

Welcome decode_welcome(std::span<const std::byte, kWelcomeBytes> bytes) {
  ByteReader in = reader(bytes, "a welcome of a path", "not a welcome of a path");
  if (in.number<std::uint64_t>() != kWelcomeMagic) in.fail("the other side speaks something else");
  Welcome welcome;
  welcome.version = in.number<std::uint32_t>();
  if (welcome.version != kProtocolVersion) return welcome;
  check_seal(bytes, in);
  welcome.answer = in.number<Answer>();
  welcome.session = in.array<sizeof(SessionId)>();
  welcome.streams = in.number<std::uint32_t>();
  welcome.unmatched_limit = in.number<std::uint64_t>();
  welcome.message_limit = in.number<std::uint64_t>();
  welcome.patience = in.number<double>();
  welcome.reason = field(in, kReasonBytes);
  welcome.party = in.array<sizeof(Party)>();
  check_rest_is_zero(in);
  if (const std::string fault = fault_of(welcome); !fault.empty()) in.fail(fault);
  return welcome;
}

std::array<std::byte, kFrameBytes> encode(const Frame& frame) {
  refuse("frame", fault_of(frame));
  ByteWriter out(kFrameBytes);
  out.put(kFrameMagic);
  out.put(static_cast<std::uint16_t>(frame.type));
  out.put(frame.length);
  out.put(frame.sequence);
  out.put(frame.tag);
  out.put(frame.index);
  out.put(frame.total);
  out.put(frame.offset);
  out.put(frame.checksum);
  return sealed<kFrameBytes>(out);
}

Frame decode_frame(std::span<const std::byte, kFrameBytes> bytes) {
  ByteReader in = reader(bytes, "a frame of a path", "not a frame of a path");
  if (in.number<std::uint16_t>() != kFrameMagic) in.fail("it begins with other bytes");
  check_seal(bytes, in);
  const auto type = in.number<std::uint16_t>();
  if (type < static_cast<int>(FrameType::kData) || type > static_cast<int>(FrameType::kGoodbye))
    in.fail(fmt::format("type {} does not exist", type));
  Frame frame;
  frame.type = static_cast<FrameType>(type);
  frame.length = in.number<std::uint32_t>();
  frame.sequence = in.number<std::uint64_t>();
  frame.tag = in.number<std::uint64_t>();
  frame.index = in.number<std::uint64_t>();
  frame.total = in.number<std::uint64_t>();
  frame.offset = in.number<std::uint64_t>();
  frame.checksum = in.number<std::uint64_t>();
  if (const std::string fault = fault_of(frame); !fault.empty()) in.fail(fault);
  return frame;
}

std::uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace maki::wan
