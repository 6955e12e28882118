// What can be said of a path, by one table: the keys of a [path] table and of MAKI_WAN_SETTINGS, which are the options of
// all `maki wan` commands too (send_chunk in a file is --send-chunk on a command line).
#pragma once

#include <string>
#include <vector>

#include "wan/net/settings.hpp"

namespace maki::wan {

struct PathChoices {
  PathSettings settings;
  Security security;
  RelayRoute relay;
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
  bool of_relay() const;       // whether it says something of a relay on the way
};

const std::vector<PathKey>& path_keys();
// nullptr where there is none.
const PathKey* find_path_key(const std::string& name);

// Text in TOML's double quotes.
std::string quoted(const std::string& text);

}  // namespace maki::wan
