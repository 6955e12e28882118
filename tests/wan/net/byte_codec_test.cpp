// Messages as bytes: what was put is read again, and nothing beyond the end.
#include "wan/net/byte_codec.hpp"

#include <gtest/gtest.h>

#include "tests/wan/helpers.hpp"

namespace maki::wan {
namespace {

ByteReader reader(std::span<const std::byte> bytes) { return {bytes, "a message", "a message makes no sense"}; }

using test::error_of;

TEST(ByteCodec, WhatWasPutIsReadAgain) {
  ByteWriter out;
  out.put(std::uint16_t{0x0201});
  out.put(true);
  out.put(-2.5);
  out.put_text<std::uint8_t>("four words in all", 10);
  out.put_characters("raw");
  out.fill(30);
  EXPECT_EQ(out.bytes()[0], std::byte{1});  // little-endian
  ByteReader in = reader(out.bytes());
  EXPECT_EQ(in.number<std::uint16_t>(), 0x0201);
  EXPECT_TRUE(in.flag());
  EXPECT_EQ(in.number<double>(), -2.5);
  EXPECT_EQ(in.text<std::uint8_t>(10), "four words");
  EXPECT_EQ(in.array<3>(), (std::array{std::byte{'r'}, std::byte{'a'}, std::byte{'w'}}));
  EXPECT_EQ(in.left(), 5u);
  in.zeros(5, "no zeros");
  in.end();
  EXPECT_EQ(block<40>(out.bytes())[39], std::byte{0});
}

TEST(ByteCodec, NothingIsReadBeyondTheEnd) {
  const std::array<std::byte, 3> three{std::byte{2}, std::byte{0}, std::byte{9}};
  EXPECT_EQ(error_of<ProtocolError>([&] { reader(three).number<std::uint32_t>(); }), "a message is too short");
  EXPECT_EQ(error_of<ProtocolError>([&] { reader(three).text<std::uint16_t>(100); }), "a message is too short");
  EXPECT_EQ(error_of<ProtocolError>([&] { reader(three).bytes(~std::size_t{0}); }), "a message is too short");
  EXPECT_EQ(error_of<ProtocolError>([&] { reader(three).end(); }), "a message is too long");
}

TEST(ByteCodec, WhatCannotBeIsSaid) {
  const std::array<std::byte, 3> three{std::byte{2}, std::byte{0}, std::byte{9}};
  EXPECT_EQ(error_of<ProtocolError>([&] { reader(three).flag(); }),
            "a message makes no sense (a flag is neither 0 nor 1)");
  EXPECT_EQ(error_of<ProtocolError>([&] { reader(three).number<std::uint8_t>(1, "two"); }),
            "a message makes no sense (two)");
  EXPECT_EQ(error_of<ProtocolError>([&] { reader(three).text<std::uint8_t>(1); }),
            "a message makes no sense (a text is too long)");
  EXPECT_EQ(error_of<ProtocolError>([&] { reader(three).zeros(1, "set"); }), "a message makes no sense (set)");
}

}  // namespace
}  // namespace maki::wan
