// maki power and bispectrum: spectra of a snapshot, and of two.
#include <fmt/format.h>

#include "src/cli/commands.hpp"
#include "src/run/products.hpp"
#include "src/run/start_run.hpp"

namespace maki {
namespace {

struct PowerArguments {
  std::string snapshot, output, other, config;
  int mesh = 0, folding = 2;
  bool overwrite = false;
};

PowerTheory theory_on_root(const std::string& config, const std::string& snapshot, const LoadedSet& loaded) {
  PowerTheory theory;
  root_succeeds(loaded.ranks(), [&] { theory = power_theory_of_file(config, snapshot, loaded.header(), say); });
  return theory;
}

void write_cross(const PowerArguments& given, const LoadedSet& first, const SpectrumOptions& options) {
  const LoadedSet second(given.other, first.ranks());
  print_lines(stdout, second.report().notes);
  const CrossTable table = cross_power_of(first.set(), second.set(), options);
  root_succeeds(first.ranks(), [&] {
    write_cross_power_file(given.output, table, {given.snapshot, given.other}, first.header(), first.provenance(),
                           given.overwrite);
  });
}

void write_power(const PowerArguments& given) {
  const Communicator ranks = Communicator::world();
  root_succeeds(ranks, [&] { check_output(given.output, given.overwrite, {given.snapshot, given.other}); });
  const LoadedSet loaded(given.snapshot, ranks);
  print_lines(stdout, loaded.report().notes);
  const DeviceSet set = loaded.set();
  SpectrumOptions options{given.mesh, given.folding};
  if (options.cells == 0) options.cells = default_power_mesh(particles_of_all(set));
  if (given.other.empty()) {
    if (set.frame.periodic) options.theory = theory_on_root(given.config, given.snapshot, loaded);
    write_power_of(set, options, given.output, loaded.provenance(), given.overwrite);
  } else {
    write_cross(given, loaded, options);
  }
  if (ranks.rank() == 0) fmt::print("wrote {}\n", given.output);
}

struct BispectrumArguments {
  std::string snapshot, output, config;
  int mesh = 0;
  BispectrumOptions triangles;
  bool overwrite = false;
};

void write_bispectrum(const BispectrumArguments& given) {
  const Communicator ranks = Communicator::world();
  root_succeeds(ranks, [&] { check_output(given.output, given.overwrite, {given.snapshot}); });
  const LoadedSet loaded(given.snapshot, ranks);
  print_lines(stdout, loaded.report().notes);
  const DeviceSet set = loaded.set();
  BispectrumOptions options = given.triangles;
  options.cells = given.mesh > 0 ? given.mesh : default_bispectrum_mesh(particles_of_all(set));
  PowerTheory theory;
  if (set.frame.periodic) theory = theory_on_root(given.config, given.snapshot, loaded);
  const BispectrumTable table = bispectrum_of(set, options, theory.linear);
  root_succeeds(ranks, [&] {
    write_bispectrum_file(given.output, table, loaded.header(), loaded.provenance(), given.overwrite);
    fmt::print("wrote {}\n", given.output);
  });
}

// Adds options that spectra share. Returns --config.
template <class Arguments>
CLI::Option* add_spectrum_options(CLI::App& command, Arguments& given, const char* mesh) {
  command.add_option("SNAPSHOT", given.snapshot, "HDF5 or GADGET binary, of a periodic box")->required();
  add_output_options(command, given.output, given.overwrite, "text file to write");
  command.add_option("--mesh", given.mesh, mesh)->check(CLI::Range(8, 8192));
  return command.add_option("--config", given.config, "take the linear power spectrum from this configuration");
}

}  // namespace

void add_power_command(CLI::App& program) {
  auto options = std::make_shared<PowerArguments>();
  CLI::App* command =
      add_command(program, "power", "Measure the power spectrum of a snapshot, or the cross spectrum of two",
                  "maki power output/quickstart/snapshot_003.hdf5 -o power.txt --mesh 256 --folding 4", options,
                  write_power);
  CLI::Option* const config =
      add_spectrum_options(*command, *options, "cells along a side, even; default: as many as particles along a side");
  command
      ->add_option("--folding", options->folding,
                   "a power of two: reach so many times the mesh's Nyquist wave number, by folding the box onto itself")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      ->add_option("--cross", options->other,
                   "a second snapshot of the same box: both spectra and their cross spectrum")
      ->excludes(config);
}

void add_bispectrum_command(CLI::App& program) {
  auto options = std::make_shared<BispectrumArguments>();
  CLI::App* command =
      add_command(program, "bispectrum", "Measure equilateral and squeezed bispectra of a snapshot",
                  "maki bispectrum output/quickstart/snapshot_003.hdf5 -o bispectrum.txt", options, write_bispectrum);
  add_spectrum_options(
      *command, *options,
      "cells along a side, even, of which a third are used; default: 3/2 of the particles along a side");
  command->add_option("--width", options->triangles.width, "of a shell of wave numbers, in 2 pi / side; default: 2")
      ->check(CLI::Range(1.0, 1000.0));
  command
      ->add_option("--long", options->triangles.long_shell,
                   "which shell has the long side of squeezed triangles; default: 1, the first")
      ->check(above_zero());
}

}  // namespace maki
