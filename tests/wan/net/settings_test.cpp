#include "wan/net/settings.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/wan/helpers.hpp"

namespace maki::wan {
namespace {

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
  return test::error_of([&] { settings.check(); });
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
  const std::string text = test::error_of([] { parse_rate("100"); });
  for (const char* word : {"'100'", "no unit", "Mbit/s", "MB/s"}) EXPECT_TRUE(test::says(text, word));
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

}  // namespace
}  // namespace maki::wan
