// Configurations as text.
#pragma once

#include <string>

#include "src/config/config.hpp"

namespace maki {

// Valid TOML that parses to the same Config: every key that has a meaning for this kind of run.
std::string to_toml(const Config& config);

// Every key with default, unit, range and meaning: what `maki config` prints, itself a valid TOML file.
std::string describe_keys();

}  // namespace maki
