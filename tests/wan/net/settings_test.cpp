#include "wan/net/settings.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "wan/net/error.hpp"

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
  try {
    settings.check();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
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

TEST(Log, QuotesPeersSafelyAndOnce) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, const std::string& line) { lines.push_back(line); });
  log(LogLevel::kWarning, "peer \x1b[2J says\nhello");
  for (int i = 0; i < 3; ++i) log_once(LogLevel::kInfo, "said once by this test");
  set_log_sink({});
  EXPECT_EQ(lines, (std::vector<std::string>{"peer \\x1b[2J says\\x0ahello", "said once by this test"}));
}

}  // namespace
}  // namespace maki::wan
