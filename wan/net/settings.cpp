#include "wan/net/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "wan/net/error.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan {

// ---- sizes, rates and times ----------------------------------------------------------------------------------------

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// clang-format off
constexpr Unit kSizes[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
                           {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
constexpr Unit kRates[] = {{"Mbit/s", 125e3}, {"Gbit/s", 125e6}, {"kbit/s", 125}, {"bit/s", 0.125}, {"B/s", 1},
                           {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}};
constexpr Unit kTimes[] = {{"s", 1}, {"ms", 1e-3}, {"min", 60}, {"h", 3600}, {"d", 86400}};
// clang-format on

std::string names_of(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

double factor_of(std::span<const Unit> units, std::string_view name) {
  const auto found = std::ranges::find(units, name, &Unit::name);
  return found == units.end() ? 0 : found->factor;
}

// `plain`: the unit of a number without one; 0: only zero may have none.
double parse(const std::string& text, const char* what, std::span<const Unit> units, double plain) {
  const std::string expected = fmt::format("a number and one of the units {}", names_of(units));
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || !std::isfinite(number))
    throw Error(fmt::format("'{}' does not begin with a number", text), "",
                fmt::format("give a {}: {}", what, expected));
  const std::string_view unit = trimmed({rest, end});
  const double factor = unit.empty() ? plain : factor_of(units, unit);
  if (!unit.empty() && factor == 0)
    throw Error(fmt::format("'{}' has an unknown unit, '{}'", text, unit), "",
                fmt::format("give a {}: {}", what, expected));
  if (number < 0) throw Error(fmt::format("'{}' is below zero", text));
  if (factor == 0 && number != 0) throw Error(fmt::format("'{}' has no unit", text), "", "give " + expected);
  return number * factor;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

std::size_t parse_size(const std::string& text) {
  const double bytes = parse(text, "size", kSizes, 1);
  const double whole = std::round(bytes);  // 4.1 and 1e6 give 4099999.9999999995
  if (!(bytes <= 9e18) || !(std::fabs(bytes - whole) <= 1e-12 * bytes))
    throw Error(fmt::format("'{}' is no number of bytes", text));
  return static_cast<std::size_t>(whole);
}

double parse_rate(const std::string& text) { return parse(text, "rate", kRates, 0); }
double parse_seconds(const std::string& text) { return parse(text, "time", kTimes, 1); }

int parse_integer(const std::string& text, int low, int high) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || rest != end || number < low || number > high)
    throw Error(fmt::format("'{}' does not fit", text), "", fmt::format("give an integer, {} to {}", low, high));
  return number;
}

std::string size_text(std::size_t bytes) {
  for (const char* name : {"GB", "GiB", "MB", "MiB", "kB", "KiB"}) {
    const auto factor = static_cast<std::size_t>(factor_of(kSizes, name));
    if (bytes >= factor && bytes % factor == 0) return fmt::format("{} {}", bytes / factor, name);
  }
  return fmt::format("{} B", bytes);
}

std::string rate_text(double bytes_per_second) {
  for (const char* name : {"Mbit/s", "MB/s"}) {
    const double factor = factor_of(kRates, name);
    if ((bytes_per_second / factor) * factor == bytes_per_second)
      return fmt::format("{} {}", bytes_per_second / factor, name);
  }
  return fmt::format("{} B/s", bytes_per_second);
}

std::string amount(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  if (value < 1e9) return fmt::format("{:.1f} MB", value / 1e6);
  return value < 1e12 ? fmt::format("{:.2f} GB", value / 1e9) : fmt::format("{:.3f} TB", value / 1e12);
}

// ---- checks --------------------------------------------------------------------------------------------------------

namespace {

[[noreturn]] void no_endpoint(const std::string& text, const std::string& reason) {
  throw Error("'" + text + "' is no address", reason, "write host:port, 1.2.3.4:port or [::1]:port");
}

std::uint16_t parse_port(const std::string& text, const std::string& port) {
  std::uint16_t value = 0;
  const char* end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data(), end, value);
  if (port.empty()) no_endpoint(text, "it has no port");
  if (error != std::errc{} || stop != end) no_endpoint(text, "'" + port + "' is no port from 0 to 65535");
  return value;
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

// ---- keys ----------------------------------------------------------------------------------------------------------

namespace {

bool parse_switch(const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  throw Error(fmt::format("'{}' does not fit", text), "", "give true or false");
}

// "6000-6100", or one port.
void parse_ports(const std::string& text, PathSettings& settings) {
  const std::size_t dash = text.find('-');
  const auto port = [](const std::string& part) { return parse_integer(std::string(trimmed(part)), 1, 65535); };
  const int first = port(text.substr(0, dash));
  const int last = dash == std::string::npos ? first : port(text.substr(dash + 1));
  if (last < first) throw Error(fmt::format("'{}' runs backwards", text), "", "give the lower port first");
  settings.local_port_first = static_cast<std::uint16_t>(first);
  settings.local_port_last = static_cast<std::uint16_t>(last);
}

std::string seconds_text(double seconds) { return quoted(fmt::format("{} s", seconds)); }

std::string texts(const std::vector<std::string>& list) {
  if (list.size() == 1) return quoted(list.front());
  std::string text;
  for (const std::string& one : list) text += (text.empty() ? "" : ", ") + quoted(one);
  return "[" + text + "]";
}

constexpr const char* kSecurity = "Who may be at the other end";
constexpr const char* kSettings = "The path";
constexpr const char* kRelay = "Through a relay";

// A key for one member of PathChoices, parsed by `read` and formatted by `write`.
#define KEY(name, group, value, meaning, member, read, write)                                                       \
  PathKey {                                                                                                         \
    name, group, value, meaning, false, [](PathChoices& all, const std::string& text) { all.member = read(text); }, \
        [](const PathChoices& all) -> std::string { return write(all.member); }, nullptr                            \
  }

std::string as_is(const std::string& text) { return text; }
std::string size_value(std::size_t bytes) { return quoted(size_text(bytes)); }
std::string rate_value(double rate) { return quoted(rate_text(rate)); }
std::string integer_value(int number) { return fmt::format("{}", number); }
std::string switch_value(bool flag) { return flag ? "true" : "false"; }
int parse_streams(const std::string& text) { return parse_integer(text, 1, kMaxStreams); }

}  // namespace

const std::vector<PathKey>& path_keys() {
  static const std::vector<PathKey> keys = {
      {"key", kSecurity, "FILE", "key file that both ends hold (maki wan keygen); a listener may have many", true,
       [](PathChoices& all, const std::string& file) { all.security.key_files.push_back(file); },
       [](const PathChoices& all) { return texts(all.security.key_files); },
       [](PathChoices& all) { all.security.key_files.clear(); }},
      KEY("certificate", kSecurity, "FILE", "our certificate (PEM), instead of a key", security.certificate, as_is,
          quoted),
      KEY("private_key", kSecurity, "FILE", "its private key (PEM)", security.private_key, as_is, quoted),
      KEY("authority", kSecurity, "FILE", "certificate of the authority that signed the peer's (PEM)",
          security.authority, as_is, quoted),
      KEY("peer_name", kSecurity, "NAME",
          "name in the peer's certificate, where it is not the host's; who listens lets in no other",
          security.peer_name, as_is, quoted),
      KEY("own_name", kSecurity, "NAME", "of this side, another one than the peer's; without: this machine",
          security.own_name, as_is, quoted),
      KEY("insecure", kSecurity, "", "no encryption, and anyone may call", security.insecure, parse_switch,
          switch_value),
      KEY("streams", kSettings, "N", "TCP connections of the path, 1 to 256", settings.streams, parse_streams,
          integer_value),
      KEY("window", kSettings, "SIZE", "buffers of each stream in the kernel; 0: the kernel's tuning", settings.window,
          parse_size, size_value),
      KEY("send_chunk", kSettings, "SIZE", "piece of a message given to a stream at once", settings.send_chunk,
          parse_size, size_value),
      KEY("receive_chunk", kSettings, "SIZE", "the most taken from a stream before the next one's turn",
          settings.receive_chunk, parse_size, size_value),
      KEY("pacing", kSettings, "RATE", "what the path sends at most, such as '800 Mbit/s'; 0: no bound",
          settings.pacing_rate, parse_rate, rate_value),
      KEY("congestion", kSettings, "NAME", "congestion control: bbr, cubic, ... (default: the kernel's)",
          settings.congestion, as_is, quoted),
      KEY("local_address", kSettings, "ADDRESS", "connect from this address", settings.local_address, as_is, quoted),
      {"local_ports", kSettings, "A-B", "connect from ports of this range", false,
       [](PathChoices& all, const std::string& text) { parse_ports(text, all.settings); },
       [](const PathChoices& all) {
         return quoted(fmt::format("{}-{}", all.settings.local_port_first, all.settings.local_port_last));
       },
       nullptr},
      KEY("patience", kSettings, "TIME", "a peer that is silent for so long is given up", settings.patience,
          parse_seconds, seconds_text),
      KEY("stream_timeout", kSettings, "TIME", "a stream that is silent for so long is reconnected",
          settings.stream_timeout, parse_seconds, seconds_text),
      KEY("heartbeat", kSettings, "TIME", "between heartbeats on an idle stream", settings.heartbeat, parse_seconds,
          seconds_text),
      KEY("connect_timeout", kSettings, "TIME", "of one attempt to connect", settings.connect_timeout, parse_seconds,
          seconds_text),
      KEY("handshake_timeout", kSettings, "TIME", "for a peer to show who it is", settings.handshake_timeout,
          parse_seconds, seconds_text),
      KEY("unmatched_limit", kSettings, "SIZE",
          "memory for what arrives before it is asked for, and so the most on the way; between sites, "
          "unless given, no less than pacing and windows let come in a second",
          settings.unmatched_limit, parse_size, size_value),
      KEY("message_limit", kSettings, "SIZE", "the largest message", settings.message_limit, parse_size, size_value),
      KEY("relay", kRelay, "HOST:PORT", "relay on the way (maki wan relay)", relay.relay, Endpoint::parse,
          [](const Endpoint& relay) { return quoted(relay.text()); }),
      KEY("relay_key", kRelay, "FILE", "key file of the relay", relay.key_file, as_is, quoted),
      KEY("relay_target", kRelay, "NAME", "whom the relay shall call, or, to listen, by which name we are called",
          relay.target, as_is, quoted)};
  return keys;
}

#undef KEY

std::string PathKey::option() const {
  std::string text = name;
  std::replace(text.begin(), text.end(), '_', '-');
  return "--" + text;
}

bool PathKey::of_relay() const { return group == kRelay; }

const PathKey* find_path_key(const std::string& name) {
  const auto found = std::ranges::find(path_keys(), name, &PathKey::name);
  return found == path_keys().end() ? nullptr : &*found;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace maki::wan
