#include "wan/net/path/wire.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "wan/net/printable.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian, and written with memcpy");
static_assert(sizeof(double) == 8);

namespace {

constexpr std::uint64_t kHelloMagic = 0x314f4c4c484b414d;    // "MAKHLLO1"
constexpr std::uint64_t kWelcomeMagic = 0x31434c57484b414d;  // "MAKHWLC1"
constexpr std::uint16_t kFrameMagic = 0x464d;                // "MF"
constexpr std::size_t kCheckBytes = 8;                       // XXH3 of all that stands before it ends each of the three
constexpr std::size_t kNameBytes = 63;
constexpr std::size_t kReasonBytes = 95;

// Fills a block from its start; what is not written stays zero.
class Writer {
 public:
  explicit Writer(std::span<std::byte> block) : block_(block) {}

  template <class T>
  void put(const T& value) {
    std::memcpy(block_.data() + at_, &value, sizeof value);
    at_ += sizeof value;
  }
  // A length byte and a field of `room` bytes.
  void put_text(const std::string& text, std::size_t room) {
    put(static_cast<std::uint8_t>(text.size()));
    std::memcpy(block_.data() + at_, text.data(), text.size());
    at_ += room;
  }
  void seal() {
    const std::size_t end = block_.size() - kCheckBytes;
    const std::uint64_t check = checksum(block_.first(end));
    std::memcpy(block_.data() + end, &check, sizeof check);
  }

 private:
  std::span<std::byte> block_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  Reader(std::span<const std::byte> block, const char* what) : block_(block), what_(what) {}

  [[noreturn]] void fail(const std::string& reason) const {
    throw ProtocolError(fmt::format("not a {}", what_), reason);
  }

  template <class T>
  T get() {
    T value;
    std::memcpy(&value, block_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string get_text(std::size_t room) {
    const auto size = get<std::uint8_t>();
    if (size > room) fail("a text longer than its field");
    std::string text(size, '\0');
    std::memcpy(text.data(), block_.data() + at_, size);
    for (std::size_t i = size; i < room; ++i)
      if (block_[at_ + i] != std::byte{0}) fail("bytes behind the end of a text");
    at_ += room;
    return text;
  }
  bool get_flag() {
    const auto value = get<std::uint32_t>();
    if (value > 1) fail("a switch that is neither off nor on");
    return value == 1;
  }
  void check_seal() const {
    const std::size_t end = block_.size() - kCheckBytes;
    std::uint64_t check;
    std::memcpy(&check, block_.data() + end, sizeof check);
    if (check != checksum(block_.first(end))) fail("the checksum of its header is wrong");
  }
  // What lies between the last field and the checksum.
  void check_rest_is_zero() const {
    for (std::size_t i = at_; i < block_.size() - kCheckBytes; ++i)
      if (block_[i] != std::byte{0}) fail("bytes that have no meaning are set");
  }

 private:
  std::span<const std::byte> block_;
  const char* what_;
  std::size_t at_ = 0;
};

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
  std::array<std::byte, kHelloBytes> bytes{};
  Writer out(bytes);
  out.put(kHelloMagic);
  out.put(hello.version);
  out.put(hello.stream);
  out.put(hello.session);
  out.put(hello.epoch);
  out.put(hello.streams);
  out.put(hello.unmatched_limit);
  out.put(hello.message_limit);
  out.put(hello.patience);
  out.put_text(hello.name, kNameBytes);
  out.put(hello.party);
  out.put(static_cast<std::uint32_t>(hello.own_machine));
  out.seal();
  return bytes;
}

Hello decode_hello(std::span<const std::byte, kHelloBytes> bytes) {
  Reader in(bytes, "greeting of a path");
  if (bytes[0] == std::byte{0x16} && bytes[1] == std::byte{3})
    in.fail("the other side speaks TLS, and this side is insecure");
  if (in.get<std::uint64_t>() != kHelloMagic) in.fail("the other side speaks something else");
  Hello hello;
  hello.version = in.get<std::uint32_t>();
  if (hello.version != kProtocolVersion) return hello;
  in.check_seal();
  hello.stream = in.get<std::uint32_t>();
  hello.session = in.get<SessionId>();
  hello.epoch = in.get<std::uint32_t>();
  hello.streams = in.get<std::uint32_t>();
  hello.unmatched_limit = in.get<std::uint64_t>();
  hello.message_limit = in.get<std::uint64_t>();
  hello.patience = in.get<double>();
  hello.name = in.get_text(kNameBytes);
  hello.party = in.get<Party>();
  hello.own_machine = in.get_flag();
  in.check_rest_is_zero();
  if (const std::string fault = fault_of(hello); !fault.empty()) in.fail(fault);
  return hello;
}

std::array<std::byte, kWelcomeBytes> encode(const Welcome& welcome) {
  Welcome sent = welcome;
  sent.reason =
      printable(welcome.reason, kReasonBytes);  // of messages of any kind: it is made to fit rather than refused
  refuse("welcome", fault_of(sent));
  std::array<std::byte, kWelcomeBytes> bytes{};
  Writer out(bytes);
  out.put(kWelcomeMagic);
  out.put(sent.version);
  out.put(static_cast<std::uint32_t>(sent.answer));
  out.put(sent.session);
  out.put(sent.streams);
  out.put(sent.unmatched_limit);
  out.put(sent.message_limit);
  out.put(sent.patience);
  out.put_text(sent.reason, kReasonBytes);
  out.put(sent.party);
  out.seal();
  return bytes;
}

Welcome decode_welcome(std::span<const std::byte, kWelcomeBytes> bytes) {
  Reader in(bytes, "welcome of a path");
  if (in.get<std::uint64_t>() != kWelcomeMagic) in.fail("the other side speaks something else");
  Welcome welcome;
  welcome.version = in.get<std::uint32_t>();
  if (welcome.version != kProtocolVersion) return welcome;
  in.check_seal();
  welcome.answer = static_cast<Answer>(in.get<std::uint32_t>());
  welcome.session = in.get<SessionId>();
  welcome.streams = in.get<std::uint32_t>();
  welcome.unmatched_limit = in.get<std::uint64_t>();
  welcome.message_limit = in.get<std::uint64_t>();
  welcome.patience = in.get<double>();
  welcome.reason = in.get_text(kReasonBytes);
  welcome.party = in.get<Party>();
  in.check_rest_is_zero();
  if (const std::string fault = fault_of(welcome); !fault.empty()) in.fail(fault);
  return welcome;
}

std::array<std::byte, kFrameBytes> encode(const Frame& frame) {
  refuse("frame", fault_of(frame));
  std::array<std::byte, kFrameBytes> bytes{};
  Writer out(bytes);
  out.put(kFrameMagic);
  out.put(static_cast<std::uint16_t>(frame.type));
  out.put(frame.length);
  out.put(frame.sequence);
  out.put(frame.tag);
  out.put(frame.index);
  out.put(frame.total);
  out.put(frame.offset);
  out.put(frame.checksum);
  out.seal();
  return bytes;
}

Frame decode_frame(std::span<const std::byte, kFrameBytes> bytes) {
  Reader in(bytes, "frame of a path");
  if (in.get<std::uint16_t>() != kFrameMagic) in.fail("it begins with other bytes");
  in.check_seal();
  const auto type = in.get<std::uint16_t>();
  if (type < static_cast<int>(FrameType::kData) || type > static_cast<int>(FrameType::kGoodbye))
    in.fail(fmt::format("type {} does not exist", type));
  Frame frame;
  frame.type = static_cast<FrameType>(type);
  frame.length = in.get<std::uint32_t>();
  frame.sequence = in.get<std::uint64_t>();
  frame.tag = in.get<std::uint64_t>();
  frame.index = in.get<std::uint64_t>();
  frame.total = in.get<std::uint64_t>();
  frame.offset = in.get<std::uint64_t>();
  frame.checksum = in.get<std::uint64_t>();
  if (const std::string fault = fault_of(frame); !fault.empty()) in.fail(fault);
  return frame;
}

std::uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace maki::wan
