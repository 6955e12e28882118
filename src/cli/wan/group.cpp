#include "src/cli/wan/wan_commands.hpp"

namespace maki {

void add_wan_commands(CLI::App& program) {
  CLI::App* wan = program.add_subcommand("wan", "Join sites across the wide area: keys, measuring, copying, relaying");
  wan->require_subcommand(1);
  wan->footer("\nExample:\n  maki wan keygen site.key\n  maki wan COMMAND --help\n");
  add_wan_keygen(*wan);
  add_wan_bench(*wan);
  add_wan_copy(*wan);
  add_wan_serve(*wan);
  add_wan_sync(*wan);
  add_wan_relay(*wan);
}

}  // namespace maki
