// The commands below `maki wan`: tools that join sites. Each serves one process and starts no MPI.
#pragma once

#include "src/cli/commands.hpp"

namespace maki {

void add_wan_commands(CLI::App& program);

void add_wan_keygen(CLI::App& wan);
void add_wan_bench(CLI::App& wan);
void add_wan_copy(CLI::App& wan);
void add_wan_serve(CLI::App& wan);
void add_wan_sync(CLI::App& wan);
void add_wan_relay(CLI::App& wan);

}  // namespace maki
