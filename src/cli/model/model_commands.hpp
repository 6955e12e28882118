// The commands of `maki model`.
#pragma once

#include "src/cli/commands.hpp"

namespace maki {

void add_model_commands(CLI::App& program);

}  // namespace maki
