// Machines for the performance models (src/model) from TOML, as those of configs/machines/: [network], [[site]] in the
// order of the ring, [accelerator], with the names of the fields as keys. Numbers are seconds and bytes a second; text
// has a unit.
#pragma once

#include <string>

#include "src/model/machine.hpp"

namespace maki {

// `name` stands for the file in messages. Throws Error on invalid TOML, unknown keys (with the nearest known one),
// values that are not numbers above zero, unknown units.
model::Machine parse_machine(const std::string& text, const std::string& name);
model::Machine read_machine(const std::string& path);

}  // namespace maki
