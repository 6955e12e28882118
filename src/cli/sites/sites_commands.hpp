// The commands of `maki sites`, each of which adds itself.
#pragma once

#include "src/cli/commands.hpp"

namespace maki {

void add_sites_commands(CLI::App& program);
void add_sites_check(CLI::App& sites);

}  // namespace maki
