#include <fmt/format.h>

#include "src/cli/commands.hpp"
#include "wan/net/secure/key.hpp"

namespace maki {

namespace {

struct Options {
  std::string file;
};

void make_key(const Options& given) {
  const wan::Key key = wan::Key::make();
  wan::write_key(key, given.file);
  fmt::print(
      "wrote key {0} to {1}, readable by you only\n"
      "Both ends of a path hold the same key; make one for each pair of sites. Bring it to the other site by a way\n"
      "that nobody listens to, and let nobody else read it there:\n"
      "  scp -p {1} OTHER-SITE:\n"
      "Then, to see how fast the two can talk:\n"
      "  maki wan bench --listen :6000 --key {1}         # at the site that can be called\n"
      "  maki wan bench OTHER-SITE:6000 --key {1}        # at the site that calls\n",
      key.id, given.file);
}

}  // namespace

void add_wan_keygen(CLI::App& wan) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(wan, "keygen", "Make a key file that the two ends of a path share; never overwrites one",
                  "maki wan keygen site.key", options, make_key);
  command->add_option("FILE", options->file, "file to write")->required();
}

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
