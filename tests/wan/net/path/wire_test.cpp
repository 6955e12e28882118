// Greetings, frame headers and acknowledgements: what goes in comes out, and nothing else is taken for one.
#include "wan/net/path/wire.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "tests/wan/fuzz/parsers.hpp"

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
  welcome.unmatched_limit = 5;
  welcome.message_limit = 6;
  welcome.patience = 600;
  welcome.reason = "why not";
  welcome.party = party_of("there");
  return welcome;
}

Frame some_frame() {
  return {.type = FrameType::kData,
          .length = kMaxPayload,
          .sequence = 0x0102030405060708,
          .tag = 42,
          .index = 3,
          .total = kMaxPayload + 100,
          .offset = 100,
          .checksum = 0xfedcba9876543210};
}

TEST(Wire, HelloComesBack) {
  EXPECT_EQ(decode_hello(encode(some_hello())), some_hello());
  EXPECT_FALSE(decode_hello(encode(some_hello())).is_new());
  EXPECT_TRUE(decode_hello(encode(Hello{})).is_new());
}

TEST(Wire, WelcomeComesBack) {
  for (std::uint32_t answer = 0; answer <= 5; ++answer) {
    Welcome sent = some_welcome();
    sent.answer = static_cast<Answer>(answer);
    EXPECT_EQ(decode_welcome(encode(sent)), sent);
  }
}

TEST(Wire, LongReasonIsCutAtAWholeCharacterAndMadePrintable) {
  Welcome welcome = some_welcome();
  welcome.answer = Answer::kRefused;
  welcome.reason = "a\nb" + std::string(85, 'x') + "\xc3\xa9 and more";  // no room for the two bytes of the last letter
  const Welcome got = decode_welcome(encode(welcome));
  EXPECT_EQ(got.reason, "a\\x0ab" + std::string(85, 'x') + "...");
}

TEST(Wire, FrameComesBack) { EXPECT_EQ(decode_frame(encode(some_frame())), some_frame()); }

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

// Of another version, whose number is in the third word of a greeting, nothing else is looked at.
template <std::size_t n, class Decode>
void flip_each_bit(const std::array<std::byte, n>& good, Decode decode, bool greets) {
  for (std::size_t bit = 0; bit < 8 * n; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte(1 << bit % 8);
    if (!greets || bit / 32 != 2) {
      EXPECT_THROW(decode(bad), ProtocolError) << bit;
    }
  }
}

TEST(Wire, AnyFlippedBitIsNoticed) {
  flip_each_bit(encode(some_hello()), decode_hello, true);
  flip_each_bit(encode(some_welcome()), decode_welcome, true);
  flip_each_bit(encode(some_frame()), decode_frame, false);
  for (std::size_t bit = 64; bit < 96; ++bit) {
    auto other = encode(some_hello());
    other[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_NE(decode_hello(other).version, kProtocolVersion);
    EXPECT_TRUE(decode_hello(other).name.empty());
  }
}

// The header checksum is no secret: an attacker can make it too, so every other check has to hold by itself.
TEST(Wire, SealedNonsenseIsRefused) {
  const auto with_byte = [](auto bytes, std::size_t at, int value) {
    bytes[at] = static_cast<std::byte>(value);
    fuzz::seal(bytes);
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
  EXPECT_THROW(decode_welcome(with_byte(welcome, 56, 96)), ProtocolError) << "reason longer than its field";
  EXPECT_THROW(decode_welcome(with_byte(welcome, 175, 1)), ProtocolError) << "padding";
  const auto frame = encode(some_frame());
  EXPECT_THROW(decode_frame(with_byte(frame, 2, 0)), ProtocolError) << "type 0";
  EXPECT_THROW(decode_frame(with_byte(frame, 2, 9)), ProtocolError) << "type 9";
  EXPECT_THROW(decode_frame(with_byte(frame, 2, 7)), ProtocolError) << "type 7, of an earlier protocol";
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
  Hello hello = some_hello();
  hello.name += 'x';
  EXPECT_THROW(encode(hello), Error);
  hello = some_hello();
  hello.patience = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(encode(hello), Error);
}

TEST(Wire, EmptyMessageAndControlFramesAreFrames) {
  for (const Frame& frame :
       {Frame{.type = FrameType::kData, .sequence = 1, .tag = 3},
        Frame{.type = FrameType::kMatched, .sequence = 2, .tag = 3, .index = 1},
        Frame{.type = FrameType::kAck, .length = kMaxControl}, Frame{.type = FrameType::kPing, .sequence = ~0ull},
        Frame{.type = FrameType::kPong}, Frame{.type = FrameType::kGoodbye, .length = 12}}) {
    EXPECT_EQ(decode_frame(encode(frame)), frame);
  }
}

TEST(Wire, ChecksumIsXxh3) {
  EXPECT_EQ(checksum({}), 0x2d06800538d394c2u);  // the value that XXH3's authors give for nothing
}

// ---- acknowledgements ----

TEST(ReceivedSet, KnowsWhatCameInAnyOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    ReceivedSet set;
    std::set<std::uint64_t> truth;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t number = 1 + random() % 200;
      EXPECT_EQ(set.add(number), truth.insert(number).second);
    }
    std::uint64_t up_to = 0;
    while (truth.contains(up_to + 1)) ++up_to;
    EXPECT_EQ(set.all_up_to(), up_to);
    for (std::uint64_t number = 1; number <= 201; ++number) EXPECT_EQ(set.contains(number), truth.contains(number));
    const ReceivedSet copy = ReceivedSet::decode(set.encode(1 << 16));
    EXPECT_EQ(copy.all_up_to(), set.all_up_to());
    EXPECT_EQ(copy.ranges(), set.ranges());
  }
}

TEST(ReceivedSet, TellsTheLowestRangesWhereNotAllFit) {
  ReceivedSet set;
  for (std::uint64_t number = 2; number <= 200; number += 2) set.add(number);
  const auto bytes = set.encode(8 + 16 * 10);
  EXPECT_EQ(bytes.size(), 8u + 16 * 10);
  EXPECT_EQ(ReceivedSet::decode(bytes).ranges().rbegin()->second, 20u);
}

TEST(ReceivedSet, DoesNotGrowWithoutEnd) {
  ReceivedSet set;
  EXPECT_THROW(for (std::uint64_t number = 2;; number += 2) set.add(number), ProtocolError);
}

TEST(ReceivedSet, RefusesWhatItCannotHaveSaid) {
  EXPECT_THROW(ReceivedSet::decode({}), ProtocolError);
  ReceivedSet set;
  set.add(5);
  auto bytes = set.encode(1 << 10);
  bytes.pop_back();
  EXPECT_THROW(ReceivedSet::decode(bytes), ProtocolError);
  bytes = set.encode(1 << 10);
  bytes[8] = std::byte{1};  // a range that continues all_up_to
  EXPECT_THROW(ReceivedSet::decode(bytes), ProtocolError);
  bytes[8] = std::byte{9};  // ends before it begins
  EXPECT_THROW(ReceivedSet::decode(bytes), ProtocolError);
}

}  // namespace
}  // namespace maki::wan
