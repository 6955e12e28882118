#include "wan/net/mpw/environment.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/mpw/quantity.hpp"

namespace maki::wan::mpw {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string unquoted(const std::string& text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

std::vector<std::string> split(const std::string& text, const std::string& separators) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    const std::string part = trimmed(text.substr(begin, end - begin));
    if (!part.empty()) parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

// Of a line; a # inside quotes is text.
std::string without_comment(const std::string& line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != 0 ? line[i] == quote : line[i] == '"' || line[i] == '\'') {
      quote = quote != 0 ? char{0} : line[i];
    } else if (line[i] == '#' && quote == 0) {
      return line.substr(0, i);
    }
  }
  return line;
}

// "a", or ["a", "b"].
void add_keys(const std::string& value, std::vector<std::string>& files) {
  const bool list = value.size() >= 2 && value.front() == '[' && value.back() == ']';
  if (!list) return files.push_back(unquoted(value));
  for (const std::string& file : split(value.substr(1, value.size() - 2), ",")) files.push_back(unquoted(file));
}

bool parse_switch(const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  throw Error(fmt::format("'{}' does not fit", text), "", "give true or false");
}

void set_ports(const std::string& text, PathSettings& settings) {
  const std::size_t dash = text.find('-');
  const int first = parse_integer(trimmed(text.substr(0, dash)), 1, 65535);
  const int last = dash == std::string::npos ? first : parse_integer(trimmed(text.substr(dash + 1)), first, 65535);
  settings.local_port_first = static_cast<std::uint16_t>(first);
  settings.local_port_last = static_cast<std::uint16_t>(last);
}

using Set = void (*)(Environment&, const std::string&);
using Text = const std::string&;

// The keys of a [path] table, and two of our own.
const std::map<std::string, Set>& keys() {
  static const std::map<std::string, Set> all = {
      {"wait", [](Environment& e, Text t) { e.wait = parse_seconds(t); }},
      {"listen", [](Environment& e, Text t) { e.listen = t; }},
      {"key", [](Environment& e, Text t) { add_keys(t, e.security.key_files); }},
      {"certificate", [](Environment& e, Text t) { e.security.certificate = t; }},
      {"private_key", [](Environment& e, Text t) { e.security.private_key = t; }},
      {"authority", [](Environment& e, Text t) { e.security.authority = t; }},
      {"peer_name", [](Environment& e, Text t) { e.security.peer_name = t; }},
      {"own_name", [](Environment& e, Text t) { e.security.own_name = t; }},
      {"insecure", [](Environment& e, Text t) { e.security.insecure = parse_switch(t); }},
      {"streams",
       [](Environment& e, Text t) { e.settings.streams = parse_integer(t, 1, kMaxStreams), e.streams_given = true; }},
      {"window", [](Environment& e, Text t) { e.settings.window = static_cast<std::size_t>(parse_size(t)); }},
      {"send_chunk", [](Environment& e, Text t) { e.settings.send_chunk = static_cast<std::size_t>(parse_size(t)); }},
      {"receive_chunk",
       [](Environment& e, Text t) { e.settings.receive_chunk = static_cast<std::size_t>(parse_size(t)); }},
      {"pacing", [](Environment& e, Text t) { e.settings.pacing_rate = parse_rate(t); }},
      {"congestion", [](Environment& e, Text t) { e.settings.congestion = t; }},
      {"local_address", [](Environment& e, Text t) { e.settings.local_address = t; }},
      {"local_ports", [](Environment& e, Text t) { set_ports(t, e.settings); }},
      {"patience", [](Environment& e, Text t) { e.settings.patience = parse_seconds(t); }},
      {"stream_timeout", [](Environment& e, Text t) { e.settings.stream_timeout = parse_seconds(t); }},
      {"heartbeat", [](Environment& e, Text t) { e.settings.heartbeat = parse_seconds(t); }},
      {"connect_timeout", [](Environment& e, Text t) { e.settings.connect_timeout = parse_seconds(t); }},
      {"handshake_timeout", [](Environment& e, Text t) { e.settings.handshake_timeout = parse_seconds(t); }},
      {"unmatched_limit",
       [](Environment& e, Text t) { e.settings.unmatched_limit = static_cast<std::size_t>(parse_size(t)); }},
      {"message_limit",
       [](Environment& e, Text t) { e.settings.message_limit = static_cast<std::uint64_t>(parse_size(t)); }},
  };
  return all;
}

std::string names_of_keys() {
  std::string names;
  for (const auto& [name, set] : keys()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

void set_one(const std::string& entry, const std::string& source, Environment& environment) {
  const std::size_t equals = entry.find('=');
  const std::string name = trimmed(entry.substr(0, equals));
  if (equals == std::string::npos)
    throw Error(fmt::format("{}: '{}' is no setting", source, entry), "", "write name = value");
  const auto found = keys().find(name);
  if (found == keys().end())
    throw Error(fmt::format("{}: there is no setting '{}'", source, name), "", "there are " + names_of_keys());
  try {
    found->second(environment, unquoted(trimmed(entry.substr(equals + 1))));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}: {}", source, name, error.what()));
  }
}

// The lines of its [path] table, or all that stand before any table.
void read_file(const std::string& name, Environment& environment) {
  std::ifstream file(name);
  if (!file)
    throw Error(fmt::format("The settings '{}' cannot be read", name), "MAKI_WAN_SETTINGS names no readable file",
                "give a file with lines such as 'streams = 32', or the settings themselves: streams=32,window=4MB");
  bool ours = true;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line = trimmed(without_comment(line));
    if (!line.empty() && line.front() == '[' && line.find('=') == std::string::npos) {
      ours = line == "[path]";
    } else if (ours && !line.empty()) {
      set_one(line, fmt::format("{}, line {}", name, number), environment);
    }
  }
}

std::string value_of(const Lookup& lookup, const char* name) {
  const char* value = lookup(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void read_settings(const std::string& text, const std::string& source, Environment& environment) {
  if (text.find('=') == std::string::npos) return read_file(text, environment);
  for (const std::string& entry : split(text, ",;\n")) set_one(entry, source, environment);
}

Environment read_environment(const Lookup& lookup) {
  Environment environment;
  Security& security = environment.security;
  const std::string settings = value_of(lookup, "MAKI_WAN_SETTINGS");
  if (!settings.empty()) read_settings(settings, "MAKI_WAN_SETTINGS", environment);
  const auto files = split(value_of(lookup, "MAKI_WAN_KEY"), ":");
  if (!files.empty()) security.key_files = files;
  const std::string insecure = value_of(lookup, "MAKI_WAN_INSECURE");
  if (insecure == "1") {
    security.insecure = true;
  } else if (!insecure.empty() && insecure != "0") {
    throw SecurityError(fmt::format("MAKI_WAN_INSECURE is '{}'", insecure), "",
                        "it is 1 (no encryption, anyone may call) or 0");
  }
  if (security.key_files.empty() && security.certificate.empty() && !security.insecure)
    throw SecurityError(
        "There is no key for this program's paths", "MAKI_WAN_KEY is not set",
        "make one with 'maki wan keygen FILE', copy it to the other side, and set MAKI_WAN_KEY=FILE on both; "
        "MAKI_WAN_INSECURE=1 goes without encryption, and anyone may call");
  if (!security.key_files.empty() && security.insecure)
    throw SecurityError("MAKI_WAN_KEY and MAKI_WAN_INSECURE=1 exclude each other", "", "unset one of them");
  environment.settings.check();
  return environment;
}

}  // namespace maki::wan::mpw
