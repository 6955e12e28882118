#include "wan/net/path_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "wan/net/error.hpp"
#include "wan/net/quantity.hpp"

namespace maki::wan {
namespace {

bool parse_switch(const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  throw Error(fmt::format("'{}' does not fit", text), "", "give true or false");
}

// "6000-6100", or one port.
void parse_ports(const std::string& text, PathSettings& settings) {
  const std::size_t dash = text.find('-');
  const auto port = [](const std::string& part) {
    const std::size_t first = std::min(part.find_first_not_of(' '), part.size());
    return parse_integer(part.substr(first, part.find_last_not_of(' ') + 1 - first), 1, 65535);
  };
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

// A key of one member of PathChoices, read by `read` and written by `write`.
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

void add_security(std::vector<PathKey>& keys) {
  keys.push_back({"key", kSecurity, "FILE", "key file that both ends hold (maki wan keygen); a listener may have many",
                  true, [](PathChoices& all, const std::string& file) { all.security.key_files.push_back(file); },
                  [](const PathChoices& all) { return texts(all.security.key_files); },
                  [](PathChoices& all) { all.security.key_files.clear(); }});
  keys.push_back(KEY("certificate", kSecurity, "FILE", "our certificate (PEM), instead of a key", security.certificate,
                     as_is, quoted));
  keys.push_back(KEY("private_key", kSecurity, "FILE", "its private key (PEM)", security.private_key, as_is, quoted));
  keys.push_back(KEY("authority", kSecurity, "FILE", "certificate of the authority that signed the peer's (PEM)",
                     security.authority, as_is, quoted));
  keys.push_back(KEY("peer_name", kSecurity, "NAME",
                     "name in the peer's certificate, where it is not the host's; who listens lets in no other",
                     security.peer_name, as_is, quoted));
  keys.push_back(KEY("own_name", kSecurity, "NAME", "of this side, another one than the peer's; without: this machine",
                     security.own_name, as_is, quoted));
  keys.push_back(KEY("insecure", kSecurity, "", "no encryption, and anyone may call", security.insecure, parse_switch,
                     switch_value));
}

void add_settings(std::vector<PathKey>& keys) {
  keys.push_back(KEY("streams", kSettings, "N", "TCP connections of the path, 1 to 256", settings.streams,
                     parse_streams, integer_value));
  keys.push_back(KEY("window", kSettings, "SIZE", "buffers of each stream in the kernel; 0: the kernel's tuning",
                     settings.window, parse_size, size_value));
  keys.push_back(KEY("send_chunk", kSettings, "SIZE", "piece of a message given to a stream at once",
                     settings.send_chunk, parse_size, size_value));
  keys.push_back(KEY("receive_chunk", kSettings, "SIZE", "the most taken from a stream before the next one's turn",
                     settings.receive_chunk, parse_size, size_value));
  keys.push_back(KEY("pacing", kSettings, "RATE", "what the path sends at most, such as '800 Mbit/s'; 0: no bound",
                     settings.pacing_rate, parse_rate, rate_value));
  keys.push_back(KEY("congestion", kSettings, "NAME", "congestion control: bbr, cubic, ... (default: the kernel's)",
                     settings.congestion, as_is, quoted));
  keys.push_back(
      KEY("local_address", kSettings, "ADDRESS", "connect from this address", settings.local_address, as_is, quoted));
  keys.push_back({"local_ports", kSettings, "A-B", "connect from ports of this range", false,
                  [](PathChoices& all, const std::string& text) { parse_ports(text, all.settings); },
                  [](const PathChoices& all) {
                    return quoted(fmt::format("{}-{}", all.settings.local_port_first, all.settings.local_port_last));
                  },
                  nullptr});
  keys.push_back(KEY("patience", kSettings, "TIME", "a peer that is silent for so long is given up", settings.patience,
                     parse_seconds, seconds_text));
  keys.push_back(KEY("stream_timeout", kSettings, "TIME", "a stream that is silent for so long is reconnected",
                     settings.stream_timeout, parse_seconds, seconds_text));
  keys.push_back(KEY("heartbeat", kSettings, "TIME", "between heartbeats on an idle stream", settings.heartbeat,
                     parse_seconds, seconds_text));
  keys.push_back(KEY("connect_timeout", kSettings, "TIME", "of one attempt to connect", settings.connect_timeout,
                     parse_seconds, seconds_text));
  keys.push_back(KEY("handshake_timeout", kSettings, "TIME", "for a peer to show who it is", settings.handshake_timeout,
                     parse_seconds, seconds_text));
  keys.push_back(KEY("unmatched_limit", kSettings, "SIZE",
                     "memory for what arrives before it is asked for, and so the most on the way; between sites, "
                     "unless given, no less than pacing and windows let come in a second",
                     settings.unmatched_limit, parse_size, size_value));
  keys.push_back(
      KEY("message_limit", kSettings, "SIZE", "the largest message", settings.message_limit, parse_size, size_value));
}

void add_relay(std::vector<PathKey>& keys) {
  keys.push_back(KEY("relay", kRelay, "HOST:PORT", "relay on the way (maki wan relay)", relay.relay, Endpoint::parse,
                     [](const Endpoint& relay) { return quoted(relay.text()); }));
  keys.push_back(KEY("relay_key", kRelay, "FILE", "key file of the relay", relay.key_file, as_is, quoted));
  keys.push_back(KEY("relay_target", kRelay, "NAME",
                     "whom the relay shall call, or, to listen, by which name we are called", relay.target, as_is,
                     quoted));
}

#undef KEY

}  // namespace

std::string PathKey::option() const {
  std::string text = name;
  std::replace(text.begin(), text.end(), '_', '-');
  return "--" + text;
}

bool PathKey::of_relay() const { return group == kRelay; }

const std::vector<PathKey>& path_keys() {
  static const std::vector<PathKey> keys = [] {
    std::vector<PathKey> all;
    add_security(all);
    add_settings(all);
    add_relay(all);
    return all;
  }();
  return keys;
}

const PathKey* find_path_key(const std::string& name) {
  for (const PathKey& key : path_keys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
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
