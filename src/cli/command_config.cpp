#include <fmt/format.h>

#include "src/cli/commands.hpp"
#include "src/config/parse.hpp"
#include "src/config/print.hpp"

namespace maki {

void add_config_command(CLI::App& program) {
  struct Options {
    std::string file;
    std::vector<std::string> settings;
  };
  auto options = std::make_shared<Options>();
  const auto print = [](const Options& given) {
    const bool describe = given.file.empty();
    fmt::print("{}", describe ? describe_keys() : to_toml(load_config(given.file, given.settings)));
  };
  CLI::App* command =
      add_command(program, "config",
                  "List every key with default, unit, range and meaning; or check and complete a configuration",
                  "maki config > my_run.toml", options, on_first_rank(print));
  command->add_option("CONFIG", options->file, "print all keys with the values that this file gives them");
  command->add_option("KEY=VALUE", options->settings, "settings that override the file's");
}

}  // namespace maki
