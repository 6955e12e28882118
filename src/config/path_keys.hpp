// The keys of paths (wan/net/path_keys.hpp) as configurations and command lines name them.
#pragma once

#include <string>
#include <vector>

#include "src/config/text.hpp"
#include "wan/net/quantity.hpp"
#include "wan/net/settings.hpp"

namespace maki {

using wan::find_path_key;
using wan::path_keys;
using wan::PathChoices;
using wan::PathKey;

// The one that a user may have meant.
inline std::string nearest_path_key(const std::string& word) {
  std::vector<std::string> names;
  for (const PathKey& key : path_keys()) names.push_back(key.name);
  return nearest_name(names, word);
}

}  // namespace maki
