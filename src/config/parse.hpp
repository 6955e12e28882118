// Configurations from files, text and command lines, and as text.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.hpp"

namespace maki {

// Reads a TOML file, then the overrides "section.key=value" (or "key=value" where only one section has the key). The
// text of a value on a command line needs no quotes: box.size=50 Mpc/h. Throws Error on unreadable files, TOML that is
// none, unknown keys (with the nearest known one), wrong types, values out of range, keys that mean nothing for
// the kind of run; each names the file and the line, or the override.
// `from` says in messages where the overrides were given.
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {},
                   const std::string& from = "command line");
// The same from text; `name` stands for the file in messages.
Config parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides = {},
                    const std::string& from = "command line");

// The known key nearest to `word` by edit distance, as "section.key"; letter case and underscores do not count.
std::string nearest_key(const std::string& word);

// Valid TOML that parses to the same Config: every key that has a meaning for this kind of run, but for sites.key.
std::string to_toml(const Config& config);

// "box.size = "50 Mpc/h"": of a configuration as the user gave it, all that is not the default. No keys' files.
std::vector<std::string> chosen_lines(const Config& config);

// The same of a resolved configuration what has to be the same at all sites of a run. Not addresses and
// paths, which a network may want different, nor keys that each site has for itself.
std::vector<std::string> lines_of_all_sites(const Config& config);

// Every key with default, unit, range and meaning: what `maki config` prints, itself a valid TOML file.
std::string describe_keys();

}  // namespace maki
