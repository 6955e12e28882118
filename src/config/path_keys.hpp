// What can be said of a path, by one table: the keys of a [path] table, which are the options of all `maki wan`
// commands too (send_chunk in a file is --send-chunk on a command line).
#pragma once

#include <string>
#include <vector>

#include "wan/net/settings.hpp"

namespace maki {

struct PathChoices {
  wan::PathSettings settings;
  wan::Security security;
  wan::RelayRoute relay;
};

struct PathKey {
  const char* name;   // "send_chunk"
  const char* group;  // as the help has it
  const char* value;  // what stands for its value there: "SIZE"; empty: a switch
  const char* meaning;
  bool list = false;  // may be given more than once
  // From text; a key's values follow one another. Throws Error that says what was expected.
  void (*set)(PathChoices&, const std::string&) = nullptr;
  std::string (*get)(const PathChoices&) = nullptr;  // TOML
  void (*clear)(PathChoices&) = nullptr;             // of lists: before the first value

  std::string option() const;  // "--send-chunk"
};

const std::vector<PathKey>& path_keys();
// nullptr where there is none.
const PathKey* find_path_key(const std::string& name);
std::string nearest_path_key(const std::string& word);

// "4 MB" -> 4000000; a plain number is in bytes.
std::size_t parse_size(const std::string& text);
// "800 Mbit/s" -> 1e8 bytes a second; 0 needs no unit.
double parse_rate(const std::string& text);
// "10 min" -> 600; a plain number is in seconds.
double parse_seconds(const std::string& text);
// Text of a number, from which parsing gives the same number.
std::string size_text(std::size_t bytes);
std::string rate_text(double bytes_per_second);

}  // namespace maki
