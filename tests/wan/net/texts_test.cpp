// Settings, sizes and times as people write them; messages as bytes; what a peer says, as a terminal may see it.
#include "wan/net/settings.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/wan/helpers.hpp"
#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

using test::error_of;

TEST(Endpoint, ReadsWhatItWrites) {
  for (const char* text : {"amsterdam:6000", "1.2.3.4:80", "[::1]:65535", ":0", "[fe80::1%eth0]:7"}) {
    EXPECT_EQ(Endpoint::parse(text).text(), text);
  }
  EXPECT_EQ(Endpoint::parse("[::1]:5"), (Endpoint{"::1", 5}));
  EXPECT_EQ(Endpoint::parse(":6000"), (Endpoint{"", 6000}));
}

TEST(Endpoint, RefusesWhatIsNone) {
  for (const char* text :
       {"", "host", "host:", "host:65536", "host:-1", "host:+1", "host: 1", "host:1x", "::1:80", "[::1]", "[::1:80",
        "[]:80", "[host]:80", "ho st:80", "host]:80", "a/b:80", "host:99999999999999999999"}) {
    EXPECT_THROW(Endpoint::parse(text), Error) << text;
  }
}

template <class Change>
std::string problem_of(Change change) {
  PathSettings settings;
  change(settings);
  return error_of([&] { settings.check(); });
}

TEST(PathSettings, DefaultsAreFine) {
  EXPECT_EQ(problem_of([](PathSettings&) {}), "");
}

TEST(PathSettings, NamesWhatIsWrong) {
  const auto expect = [](const std::string& name, auto change) {
    EXPECT_NE(problem_of(change).find(name), std::string::npos) << name << " gave: " << problem_of(change);
  };
  expect("streams", [](PathSettings& s) { s.streams = 0; });
  expect("streams", [](PathSettings& s) { s.streams = kMaxStreams + 1; });
  expect("window", [](PathSettings& s) { s.window = 1; });
  expect("send_chunk", [](PathSettings& s) { s.send_chunk = 0; });
  expect("send_chunk", [](PathSettings& s) { s.send_chunk = std::size_t{1} << 40; });
  expect("receive_chunk", [](PathSettings& s) { s.receive_chunk = 0; });
  expect("pacing_rate", [](PathSettings& s) { s.pacing_rate = -1; });
  expect("pacing_rate", [](PathSettings& s) { s.pacing_rate = std::numeric_limits<double>::quiet_NaN(); });
  expect("congestion", [](PathSettings& s) { s.congestion = "no such; thing"; });
  expect("local_port", [](PathSettings& s) { s.local_port_first = 5; });
  expect("connect_timeout", [](PathSettings& s) { s.connect_timeout = 0; });
  expect("patience", [](PathSettings& s) { s.patience = std::numeric_limits<double>::infinity(); });
  expect("stream_timeout", [](PathSettings& s) { s.stream_timeout = s.heartbeat; });
  expect("message_limit", [](PathSettings& s) { s.message_limit = 0; });
  expect("unmatched_limit", [](PathSettings& s) { s.unmatched_limit = 0; });
}

// ---- sizes, rates and times as people write them ----

TEST(Quantity, SizesRatesAndTimesCarryUnits) {
  EXPECT_EQ(parse_size("4 MB"), 4'000'000u);
  EXPECT_EQ(parse_size("64 KiB"), 65536u);
  EXPECT_EQ(parse_size("1.5 kB"), 1500u);
  EXPECT_EQ(parse_size("4.1 MB"), 4'100'000u);
  EXPECT_EQ(parse_size("2GB"), 2'000'000'000u);
  EXPECT_EQ(parse_size("700"), 700u);
  EXPECT_DOUBLE_EQ(parse_rate("800 Mbit/s"), 1e8);
  EXPECT_DOUBLE_EQ(parse_rate("100 MB/s"), 1e8);
  EXPECT_DOUBLE_EQ(parse_rate("10 Gbit/s"), 1.25e9);
  EXPECT_DOUBLE_EQ(parse_rate("0"), 0);
  EXPECT_DOUBLE_EQ(parse_seconds("10 min"), 600);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5"), 1.5);
  EXPECT_DOUBLE_EQ(parse_seconds("270 ms"), 0.27);
  EXPECT_EQ(parse_integer("256", 1, 256), 256);
  for (const char* wrong : {"4 Mb", "MB", "-1 MB", "0.5 B", "1 MB/s", "1e30 GB", "nan"})
    EXPECT_THROW(parse_size(wrong), Error) << wrong;
  for (const char* wrong : {"0", "257", "7 streams", ""}) EXPECT_THROW(parse_integer(wrong, 1, 256), Error) << wrong;
  for (const char* wrong : {"100", "100 MB", "fast", "-1 MB/s"}) EXPECT_THROW(parse_rate(wrong), Error) << wrong;
  test::expect_contains(error_of([] { parse_rate("100"); }), {"'100'", "no unit", "Mbit/s", "MB/s"});
}

TEST(Quantity, TextsOfNumbersAreReadAsTheSameNumbers) {
  for (const std::size_t bytes : {0ul, 1ul, 999ul, 65536ul, 65537ul, 4'000'000ul, 1ul << 28, 1ul << 40})
    EXPECT_EQ(parse_size(size_text(bytes)), bytes) << size_text(bytes);
  for (const double rate : {0.0, 1.0, 1e8, 123456789.0, 1e8 / 3, 9.7e7})
    EXPECT_EQ(parse_rate(rate_text(rate)), rate) << rate_text(rate);
  EXPECT_EQ(size_text(65536), "64 KiB");
  EXPECT_EQ(size_text(4'000'000), "4 MB");
  EXPECT_EQ(rate_text(1e8), "800 Mbit/s");
}

TEST(Quantity, AmountsAreRounded) {
  EXPECT_EQ(amount(999), "999 bytes");
  EXPECT_EQ(amount(1500), "1.5 kB");
  EXPECT_EQ(amount(2'100'000'000), "2.10 GB");
  EXPECT_EQ(amount(1'234'567'890'123), "1.235 TB");
}

ByteReader reader(std::span<const std::byte> bytes) { return {bytes, "a message", "a message makes no sense"}; }

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
  EXPECT_EQ(in.characters(3), "raw");
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

TEST(Printable, LeavesTextAlone) {
  for (const char* text : {"", "amsterdam at 1.2.3.4:6000", "Zürich, 東京, 🚀", "a \\x1b that was escaped"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("\x1b[2Jgone\r\n"), "\\x1b[2Jgone\\x0d\\x0a");
  EXPECT_EQ(printable(std::string_view("a\0b\x7f", 4)), "a\\x00b\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // CSI as one character
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "txt"),
            "\\xe2\\x80\\xaetxt");  // right to left from here
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");                           // CSI of 8 bits
  EXPECT_EQ(printable("\xc3"), "\\xc3");           // cut off
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(Printable, HasALength) {
  EXPECT_EQ(printable("12345", 5), "12345");
  EXPECT_EQ(printable("123456", 5), "12...");
  EXPECT_EQ(printable("aüüü", 6), "aü...");  // no half characters
  EXPECT_EQ(printable("ab\x1b\x1b", 7), "ab...");
  EXPECT_EQ(printable("123456", 2), "..");
  EXPECT_EQ(printable(std::string(1000, 'x')).size(), 500u);
}

TEST(Printable, IsTheSameTheSecondTime) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string once = printable(text);
    EXPECT_EQ(printable(once), once);
    for (const char c : once) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
  }
}

TEST(Log, QuotesPeersSafelyAndOnce) {
  const test::Log lines;
  log(LogLevel::kWarning, "peer \x1b[2J says\nhello");
  for (int i = 0; i < 3; ++i) log_once(LogLevel::kInfo, "said once by this test");
  EXPECT_EQ(lines.all(), (std::vector<std::string>{"peer \\x1b[2J says\\x0ahello", "said once by this test"}));
}

TEST(PeerLog, CountsWhatItLeavesOut) {
  std::vector<std::string> lines;
  {
    PeerLog log([&](const std::string& line) { lines.push_back(line); });
    for (int i = 0; i < 1000; ++i) log.mention(std::string(5000, 'x') + "\n", "a");
    EXPECT_EQ(lines.size(), static_cast<std::size_t>(PeerLog::kAMinute));
    for (const std::string& line : lines) EXPECT_LE(line.size(), 1000u);
    log.mention("b\x1b", "b");
    EXPECT_EQ(lines.back(), "b\\x1b");
  }
  EXPECT_EQ(lines.back(), "940 more lines about a were left out");
}

}  // namespace
}  // namespace maki::wan
