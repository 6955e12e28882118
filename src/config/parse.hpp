// Configurations from files, text and command lines.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.hpp"

namespace maki {

// Reads a TOML file, then the overrides "section.key=value" (or "key=value" where only one section has the key). The
// text of a value on a command line needs no quotes: box.size=50 Mpc/h. Throws Error on unreadable files, TOML that is
// none, unknown keys (with the nearest known one), wrong types, values out of range, keys that mean nothing for
// the kind of run; each names the file and the line, or the override.
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {});
// The same from text; `name` stands for the file in messages.
Config parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides = {});

// The known key nearest to `word` by edit distance, as "section.key"; letter case and underscores do not count.
std::string nearest_key(const std::string& word);

}  // namespace maki
