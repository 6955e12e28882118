#include <fmt/format.h>

#include "src/cli/commands.hpp"
#include "src/cli/device_set.hpp"

namespace maki {
namespace {

struct Options {
  std::string snapshot, output;
  int mesh = 0;
  bool overwrite = false;
};

void write_power(const Options& given) {
  const LoadedSet loaded(given.snapshot);
  const DeviceSet set = loaded.set();
  const int mesh = given.mesh > 0 ? given.mesh : default_power_mesh(particles_of_all(loaded.ranks(), set));
  write_power_of(loaded.ranks(), set, mesh, given.output, loaded.provenance(), given.overwrite);
  if (loaded.ranks().rank() == 0) fmt::print("wrote {}\n", given.output);
}

}  // namespace

void add_power_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(program, "power", "Measure the power spectrum of a snapshot",
                  "maki power output/quickstart/snapshot_003.hdf5 -o power.txt --mesh 256", options, write_power);
  command->add_option("SNAPSHOT", options->snapshot, "HDF5 or GADGET binary")->required();
  command->add_option("-o,--output", options->output, "text file to write")->required();
  command->add_option("--mesh", options->mesh, "cells along a side, even; default: twice the particles along a side")
      ->check(CLI::Range(8, 8192));
  command->add_flag("--overwrite", options->overwrite, "replace the file where it exists");
}

}  // namespace maki
