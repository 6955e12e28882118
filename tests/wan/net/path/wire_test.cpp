// The greeting and the frame header: what goes in comes out, and nothing else is taken for one.
#include "wan/net/path/wire.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace maki::wan {
namespace {

Hello some_hello() {
  Hello hello;
  for (std::size_t i = 0; i < hello.session.size(); ++i) hello.session[i] = static_cast<std::byte>(i + 1);
  hello.stream = 255;
  hello.epoch = 7;
  hello.streams = 256;
  hello.unmatched_limit = 1ull << 40;
  hello.message_limit = ~0ull;
  hello.patience = 12.5;
  hello.name = std::string(60, 'n') + "\xc3\xa9x";  // 63 bytes, not all ASCII
  hello.party = party_of("here");
  hello.own_machine = true;
  return hello;
}

Welcome some_welcome() {
  Welcome welcome;
  welcome.session[3] = std::byte{9};
  welcome.streams = 16;
  welcome.unmatched_limit = 5;
  welcome.message_limit = 6;
  welcome.patience = 600;
  welcome.reason = "why not";
  welcome.party = party_of("there");
  return welcome;
}

Frame some_frame() {
  Frame frame;
  frame.type = FrameType::kData;
  frame.length = kMaxPayload;
  frame.sequence = 0x0102030405060708;
  frame.tag = 42;
  frame.index = 3;
  frame.total = kMaxPayload + 100;
  frame.offset = 100;
  frame.checksum = 0xfedcba9876543210;
  return frame;
}

// The header checksum is no secret: an attacker can make it too, so every other check has to hold by itself.
template <std::size_t n>
void seal(std::array<std::byte, n>& bytes) {
  const std::uint64_t check = checksum(std::span(bytes).first(n - 8));
  std::memcpy(bytes.data() + n - 8, &check, 8);
}

TEST(Wire, HelloComesBack) {
  const Hello sent = some_hello();
  const Hello got = decode_hello(encode(sent));
  EXPECT_EQ(got.version, kProtocolVersion);
  EXPECT_EQ(got.session, sent.session);
  EXPECT_EQ(got.stream, sent.stream);
  EXPECT_EQ(got.epoch, sent.epoch);
  EXPECT_EQ(got.streams, sent.streams);
  EXPECT_EQ(got.unmatched_limit, sent.unmatched_limit);
  EXPECT_EQ(got.message_limit, sent.message_limit);
  EXPECT_EQ(got.patience, sent.patience);
  EXPECT_EQ(got.name, sent.name);
  EXPECT_EQ(got.party, sent.party);
  EXPECT_EQ(got.own_machine, sent.own_machine);
  EXPECT_FALSE(got.is_new());
  EXPECT_TRUE(decode_hello(encode(Hello{})).is_new());
}

TEST(Wire, WelcomeComesBack) {
  for (std::uint32_t answer = 0; answer <= 5; ++answer) {
    Welcome sent = some_welcome();
    sent.answer = static_cast<Answer>(answer);
    const Welcome got = decode_welcome(encode(sent));
    EXPECT_EQ(got.answer, sent.answer);
    EXPECT_EQ(got.session, sent.session);
    EXPECT_EQ(got.streams, sent.streams);
    EXPECT_EQ(got.unmatched_limit, sent.unmatched_limit);
    EXPECT_EQ(got.message_limit, sent.message_limit);
    EXPECT_EQ(got.patience, sent.patience);
    EXPECT_EQ(got.reason, sent.reason);
    EXPECT_EQ(got.party, sent.party);
  }
}

TEST(Wire, LongReasonIsCutAtAWholeCharacterAndMadePrintable) {
  Welcome welcome = some_welcome();
  welcome.answer = Answer::kRefused;
  welcome.reason = "a\nb" + std::string(85, 'x') + "\xc3\xa9 and more";  // no room for the two bytes of the last letter
  const Welcome got = decode_welcome(encode(welcome));
  EXPECT_EQ(got.reason, "a\\x0ab" + std::string(85, 'x') + "...");
}

TEST(Wire, FrameComesBack) {
  const Frame sent = some_frame();
  const Frame got = decode_frame(encode(sent));
  EXPECT_EQ(got.type, sent.type);
  EXPECT_EQ(got.length, sent.length);
  EXPECT_EQ(got.sequence, sent.sequence);
  EXPECT_EQ(got.tag, sent.tag);
  EXPECT_EQ(got.index, sent.index);
  EXPECT_EQ(got.total, sent.total);
  EXPECT_EQ(got.offset, sent.offset);
  EXPECT_EQ(got.checksum, sent.checksum);
}

// Other machines have to agree on these bytes.
TEST(Wire, FrameLayoutIsFixed) {
  const auto bytes = encode(some_frame());
  const auto at = [&](std::size_t i) { return static_cast<int>(bytes[i]); };
  EXPECT_EQ(at(0), 'M');
  EXPECT_EQ(at(1), 'F');
  EXPECT_EQ(at(2), 1);
  EXPECT_EQ(at(6), 0x40);  // 4 MiB, little-endian
  EXPECT_EQ(at(8), 0x08);
  EXPECT_EQ(at(15), 0x01);
  EXPECT_EQ(at(16), 42);
  EXPECT_EQ(at(48), 0x10);
}

TEST(Wire, AnyFlippedBitIsNoticed) {
  const auto hello = encode(some_hello());
  const auto welcome = encode(some_welcome());
  const auto frame = encode(some_frame());
  for (std::size_t bit = 0; bit < 8 * kHelloBytes; ++bit) {
    auto bad = hello;
    bad[bit / 8] ^= std::byte(1 << bit % 8);
    if (bit / 32 == 2) {  // another version: the rest is not looked at
      EXPECT_NE(decode_hello(bad).version, kProtocolVersion);
      EXPECT_TRUE(decode_hello(bad).name.empty());
    } else {
      EXPECT_THROW(decode_hello(bad), ProtocolError) << bit;
    }
  }
  for (std::size_t bit = 0; bit < 8 * kWelcomeBytes; ++bit) {
    auto bad = welcome;
    bad[bit / 8] ^= std::byte(1 << bit % 8);
    if (bit / 32 == 2) continue;
    EXPECT_THROW(decode_welcome(bad), ProtocolError) << bit;
  }
  for (std::size_t bit = 0; bit < 8 * kFrameBytes; ++bit) {
    auto bad = frame;
    bad[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_THROW(decode_frame(bad), ProtocolError) << bit;
  }
}

TEST(Wire, SealedNonsenseIsRefused) {
  const auto with_byte = [](auto bytes, std::size_t at, int value) {
    bytes[at] = static_cast<std::byte>(value);
    seal(bytes);
    return bytes;
  };
  const auto hello = encode(some_hello());
  EXPECT_THROW(decode_hello(with_byte(hello, 13, 1)), ProtocolError) << "stream 511";
  EXPECT_THROW(decode_hello(with_byte(hello, 36, 1)), ProtocolError) << "257 streams";
  EXPECT_THROW(decode_hello(with_byte(hello, 63, 0xff)), ProtocolError) << "negative patience";
  EXPECT_THROW(decode_hello(with_byte(hello, 64, 64)), ProtocolError) << "name longer than its field";
  EXPECT_THROW(decode_hello(with_byte(hello, 64, 10)), ProtocolError) << "bytes behind the name";
  EXPECT_THROW(decode_hello(with_byte(hello, 70, '\n')), ProtocolError) << "control character";
  EXPECT_THROW(decode_hello(with_byte(hello, 144, 2)), ProtocolError) << "a switch that is neither off nor on";
  EXPECT_THROW(decode_hello(with_byte(hello, 150, 1)), ProtocolError) << "padding";
  const auto welcome = encode(some_welcome());
  EXPECT_THROW(decode_welcome(with_byte(welcome, 12, 6)), ProtocolError) << "answer 6";
  EXPECT_THROW(decode_welcome(with_byte(welcome, 19, 0)), ProtocolError) << "welcome without session";
  EXPECT_THROW(decode_welcome(with_byte(welcome, 32, 0)), ProtocolError) << "no streams";
  EXPECT_THROW(decode_welcome(with_byte(welcome, 60, 96)), ProtocolError) << "reason longer than its field";
  EXPECT_THROW(decode_welcome(with_byte(welcome, 175, 1)), ProtocolError) << "padding";
  const auto frame = encode(some_frame());
  EXPECT_THROW(decode_frame(with_byte(frame, 2, 0)), ProtocolError) << "type 0";
  EXPECT_THROW(decode_frame(with_byte(frame, 2, 9)), ProtocolError) << "type 9";
  EXPECT_THROW(decode_frame(with_byte(frame, 3, 1)), ProtocolError) << "type 257";
  EXPECT_THROW(decode_frame(with_byte(frame, 4, 1)), ProtocolError)
      << "payload above the limit, past the end of the message";
  EXPECT_THROW(decode_frame(with_byte(frame, 40, 101)), ProtocolError) << "one byte past the end of the message";
}

TEST(Wire, FramesThatCannotBeAreNotSent) {
  const auto refused = [](auto change) {
    Frame frame = some_frame();
    change(frame);
    EXPECT_THROW(encode(frame), Error);
  };
  refused([](Frame& f) { f.sequence = 0; });
  refused([](Frame& f) { f.offset = ~0ull - 5; });
  refused([](Frame& f) { f.total = 10; });
  refused([](Frame& f) { f.length = kMaxPayload + 1; });
  refused([](Frame& f) { f.type = FrameType::kPing; });
  refused([](Frame& f) { f = {.type = FrameType::kAck, .length = kMaxControl + 1}; });
  refused([](Frame& f) { f = {.type = FrameType::kStreams, .sequence = 1, .total = 257}; });
  Hello hello = some_hello();
  hello.name += 'x';
  EXPECT_THROW(encode(hello), Error);
  hello = some_hello();
  hello.patience = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(encode(hello), Error);
}

TEST(Wire, EmptyMessageAndControlFramesAreFrames) {
  for (const Frame& frame : {Frame{.type = FrameType::kData, .sequence = 1, .tag = 3},
                             Frame{.type = FrameType::kMatched, .sequence = 2, .tag = 3, .index = 1},
                             Frame{.type = FrameType::kStreams, .sequence = 3, .total = 4},
                             Frame{.type = FrameType::kAck, .length = kMaxControl},
                             Frame{.type = FrameType::kPing, .sequence = ~0ull}, Frame{.type = FrameType::kPong},
                             Frame{.type = FrameType::kRetire}, Frame{.type = FrameType::kGoodbye, .length = 12}}) {
    const Frame got = decode_frame(encode(frame));
    EXPECT_EQ(got.type, frame.type);
    EXPECT_EQ(got.length, frame.length);
    EXPECT_EQ(got.sequence, frame.sequence);
    EXPECT_EQ(got.total, frame.total);
  }
}

TEST(Wire, ChecksumIsXxh3) {
  EXPECT_EQ(checksum({}), 0x2d06800538d394c2u);  // the value that XXH3's authors give for nothing
}

}  // namespace
}  // namespace maki::wan
