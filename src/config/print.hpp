// Configurations as text.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.hpp"

namespace maki {

// Valid TOML that parses to the same Config: every key that has a meaning for this kind of run, but for sites.key.
std::string to_toml(const Config& config);

// "box.size = "50 Mpc/h"": of a resolved configuration what has to be the same at all sites of a run. Not addresses and
// paths, which a network may want different, nor keys that each site has for itself.
std::vector<std::string> lines_of_all_sites(const Config& config);

// Every key with default, unit, range and meaning: what `maki config` prints, itself a valid TOML file.
std::string describe_keys();

}  // namespace maki
