#include <fmt/format.h>

#include "host/comm/communicator.hpp"
#include "src/cli/commands.hpp"
#include "src/config/parse.hpp"
#include "src/config/print.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/build.hpp"
#include "src/run/setup.hpp"

namespace maki {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> settings;
  std::string output;
  std::string format = "hdf5";
  bool big_endian = false;
};

void write_initial_conditions(const Options& given) {
  const Prepared run = prepare(load_config(given.config, given.settings));
  const Communicator world = Communicator::world();
  const bool prints = world.rank() == 0;
  if (prints) print_notes(run.notes);
  WriteOptions write;
  write.format = snapshot_format(given.format);
  write.big_endian = given.big_endian;
  write.deflate = static_cast<int>(run.config.output.compression);
  write.overwrite = run.config.run.overwrite;
  for (const std::string& file :
       write_snapshot(given.output, run.initial, provenance(to_toml(run.config), "host"), write, {}, world)) {
    if (prints) fmt::print("wrote {} particles to {}\n", run.particles, file);
  }
}

}  // namespace

void add_ic_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(program, "ic", "Make initial conditions and write them to a file",
                  "maki ic configs/quickstart.toml -o ic.hdf5 initial.seed=7", options, write_initial_conditions);
  command->add_option("CONFIG", options->config, "configuration (TOML)")->required();
  command->add_option("KEY=VALUE", options->settings, "settings that override the file's");
  command->add_option("-o,--output", options->output, "file to write; run.overwrite=true replaces one")->required();
  command->add_option("--format", options->format, "hdf5, gadget1 or gadget2")->capture_default_str();
  command->add_flag("--big-endian", options->big_endian, "byte order of gadget1 and gadget2");
}

}  // namespace maki
