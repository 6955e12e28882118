#include "wan/net/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "wan/net/error.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan {
namespace {

[[noreturn]] void no_endpoint(const std::string& text, const std::string& reason) {
  throw Error("'" + text + "' is no address", reason, "write host:port, 1.2.3.4:port or [::1]:port");
}

std::uint16_t parse_port(const std::string& text, const std::string& port) {
  unsigned value = 0;
  const char* end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data(), end, value);
  if (port.empty()) no_endpoint(text, "it has no port");
  if (error != std::errc{} || stop != end || value > 65535)
    no_endpoint(text, "'" + port + "' is no port from 0 to 65535");
  return static_cast<std::uint16_t>(value);
}

template <class T>
void in_range(const char* name, T value, T low, T high, const char* unit = "") {
  if (value >= low && value <= high) return;  // false for NaN
  throw Error(fmt::format("{} = {}", name, value), fmt::format("it must be from {} to {}{}", low, high, unit));
}

void check_sizes(const PathSettings& s) {
  constexpr std::size_t kib = 1 << 10, mib = 1 << 20;
  in_range("streams", s.streams, 1, kMaxStreams);
  if (s.window != 0) in_range("window", s.window, 4 * kib, 1024 * mib, " bytes, or 0 for the kernel's tuning");
  in_range("send_chunk", s.send_chunk, std::size_t{256}, kMaxPayload, " bytes");
  in_range("receive_chunk", s.receive_chunk, std::size_t{256}, 64 * mib, " bytes");
  in_range("unmatched_limit", s.unmatched_limit, 64 * kib, std::size_t{1} << 50, " bytes");
  in_range("message_limit", s.message_limit, std::uint64_t{1}, std::uint64_t{1} << 60, " bytes");
  if (s.pacing_rate != 0) in_range("pacing_rate", s.pacing_rate, 1e3, 1e12, " bytes per second, or 0 for none");
}

void check_times(const PathSettings& s) {
  constexpr double day = 86400;
  in_range("connect_timeout", s.connect_timeout, 0.01, day, " seconds");
  in_range("handshake_timeout", s.handshake_timeout, 0.01, day, " seconds");
  in_range("heartbeat", s.heartbeat, 0.01, day, " seconds");
  in_range("stream_timeout", s.stream_timeout, 0.02, day, " seconds");
  in_range("patience", s.patience, 0.05, 365 * day, " seconds");
  if (s.stream_timeout <= s.heartbeat) {
    throw Error(fmt::format("stream_timeout = {}", s.stream_timeout),
                fmt::format("no longer than heartbeat = {}, so idle streams would be taken for dead", s.heartbeat),
                "make it three heartbeats or more");
  }
}

}  // namespace

Endpoint Endpoint::parse(const std::string& text) {
  Endpoint endpoint;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) no_endpoint(text, "it has no port");
  endpoint.port = parse_port(text, text.substr(colon + 1));
  std::string host = text.substr(0, colon);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']' || host.size() < 4) no_endpoint(text, "a bracket is missing");
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string::npos) no_endpoint(text, "brackets are for IPv6 addresses");
  } else if (host.find(':') != std::string::npos) {
    no_endpoint(text, "an IPv6 address needs brackets");
  }
  const auto odd = [](unsigned char c) { return c <= 32 || c == 127 || c == '[' || c == ']' || c == '/'; };
  if (std::any_of(host.begin(), host.end(), odd)) no_endpoint(text, "its host has characters that no host has");
  if (host.size() > 253) no_endpoint(text, "its host is too long");
  endpoint.host = host;
  return endpoint;
}

std::string Endpoint::text() const {
  const bool six = host.find(':') != std::string::npos;
  return (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

void PathSettings::check() const {
  check_sizes(*this);
  check_times(*this);
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  if (congestion.size() > 15 || !std::all_of(congestion.begin(), congestion.end(), plain)) {
    throw Error("congestion = '" + congestion + "'", "no name of a congestion control",
                "write for example cubic or bbr");
  }
  if ((local_port_first == 0) != (local_port_last == 0) || local_port_first > local_port_last) {
    throw Error(fmt::format("local ports {} to {}", local_port_first, local_port_last), "no range of ports",
                "give local_port_first and a local_port_last that is not below it, or neither");
  }
}

}  // namespace maki::wan
