#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/mpw/meeting.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan::mpw {

// ---- being called --------------------------------------------------------------------------------------------------

std::shared_ptr<SharedListener> SharedListener::open(int port, const Environment& environment) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<SharedListener>> listeners;
  const std::lock_guard lock(mutex);
  std::shared_ptr<SharedListener> listener = listeners[port].lock();
  if (!listener) {
    listener = std::make_shared<SharedListener>(port, environment);
    listeners[port] = listener;
  }
  return listener;
}

SharedListener::SharedListener(int port, const Environment& environment)
    : listener_(Endpoint{environment.listen, static_cast<std::uint16_t>(port)}, environment.security,
                environment.settings) {}

void SharedListener::expect(const Expected& who) {
  const std::lock_guard lock(mutex_);
  expected_.push_back(&who);
}

void SharedListener::forget(const Expected& who) {
  const std::lock_guard lock(mutex_);
  std::erase(expected_, &who);
}

const Expected* SharedListener::owner(const Accepted& arrival) const {
  std::vector<const Expected*> others = expected_;
  std::erase_if(others, [&](const Expected* one) { return one->caller == arrival.name; });
  const auto named = [&](const Expected* one) {
    return std::find(one->addresses.begin(), one->addresses.end(), arrival.host) != one->addresses.end();
  };
  const auto anyone = [](const Expected* one) { return one->addresses.empty(); };
  if (const auto at = std::find_if(others.begin(), others.end(), named); at != others.end()) return *at;
  if (const auto at = std::find_if(others.begin(), others.end(), anyone); at != others.end()) return *at;
  return others.empty() ? nullptr : others.front();
}

std::optional<Accepted> SharedListener::take(const Expected& who) {
  const std::lock_guard lock(mutex_);
  while (auto accepted = listener_.accept_for(0)) arrivals_.push_back(std::move(*accepted));
  // Only its own caller is here: it is rejected, and calls again.
  arrivals_.remove_if([&](const Accepted& one) { return one.name == who.caller && owner(one) == nullptr; });
  const auto mine =
      std::find_if(arrivals_.begin(), arrivals_.end(), [&](const Accepted& one) { return owner(one) == &who; });
  if (mine == arrivals_.end()) return std::nullopt;
  std::optional<Accepted> accepted = std::move(*mine);
  arrivals_.erase(mine);
  return accepted;
}

namespace {

std::string unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
}

std::vector<std::string> split(const std::string& text, const std::string& separators) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    const std::string_view part = trimmed(std::string_view(text).substr(begin, end - begin));
    if (!part.empty()) parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

// A # inside quotes is text.
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

// "a", or ["a", "b"] if the key takes several.
std::vector<std::string> values_of(const PathKey& key, const std::string& text) {
  const bool list = key.list && text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (!list) return {unquoted(text)};
  std::vector<std::string> values;
  for (const std::string& value : split(text.substr(1, text.size() - 2), ",")) values.push_back(unquoted(value));
  return values;
}

// A key of a [path] table, except a relay's.
const PathKey* find_key(const std::string& name) {
  const PathKey* key = find_path_key(name);
  return key != nullptr && !key->of_relay() ? key : nullptr;
}

std::string names_of_keys() {
  std::set<std::string> names = {"listen", "wait"};
  for (const PathKey& key : path_keys())
    if (!key.of_relay()) names.insert(key.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void set_one(const std::string& entry, const std::string& source, Environment& environment) {
  const std::size_t equals = entry.find('=');
  const std::string name(trimmed(std::string_view(entry).substr(0, equals)));
  if (equals == std::string::npos)
    throw Error(fmt::format("{}: '{}' is no setting", source, entry), "", "write name = value");
  const PathKey* key = find_key(name);
  if (key == nullptr && name != "wait" && name != "listen")
    throw Error(fmt::format("{}: there is no setting '{}'", source, name), "", "there are " + names_of_keys());
  try {
    const std::string text(trimmed(std::string_view(entry).substr(equals + 1)));
    if (name == "wait") environment.wait = parse_seconds(unquoted(text));
    if (name == "listen") environment.listen = unquoted(text);
    if (key == nullptr) return;
    for (const std::string& value : values_of(*key, text)) key->set(environment, value);
    environment.streams_given = environment.streams_given || name == "streams";
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}: {}", source, name, error.what()));
  }
}

// The lines of the file's [path] table, or all lines before any table.
void read_file(const std::string& name, Environment& environment) {
  std::ifstream file(name);
  if (!file)
    throw Error(fmt::format("The settings '{}' cannot be read", name), "MAKI_WAN_SETTINGS names no readable file",
                "give a file with lines such as 'streams = 32', or the settings themselves: streams=32,window=4MB");
  bool ours = true;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line = std::string(trimmed(without_comment(line)));
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
