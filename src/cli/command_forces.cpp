#include <fmt/format.h>

#include <chrono>
#include <numeric>

#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/config/parse.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/build.hpp"
#include "src/run/forces.hpp"
#include "src/run/setup.hpp"

namespace maki {
namespace {

struct Options {
  std::string snapshot;
  std::vector<std::string> settings;
  std::string config;
  std::string output;
  bool direct = false, ewald = false;
  std::uint64_t targets = 0;
};

// The configuration gives the method for forces; kind, box and units come from the set itself.
Config forces_config(const Options& given, const SnapshotHeader& header) {
  std::vector<std::string> settings = given.settings;
  settings.push_back(header.comoving ? "run.kind=cosmology" : "run.kind=isolated");
  settings.push_back("initial.kind=file");
  settings.push_back("initial.file=" + given.snapshot);
  Config config = given.config.empty() ? parse_config("", "defaults", settings) : load_config(given.config, settings);
  config.output = {};
  config.time.end_redshift = -0.9;  // any end: no step is made
  config.time.end_time = Quantity{header.time + 1, ""};
  return config;
}

Snapshot select_particles(const Snapshot& all, const std::vector<std::size_t>& indices) {
  Snapshot some;
  some.header = all.header;
  for (const std::size_t i : indices) {
    some.positions.push_back(all.positions[i]);
    some.velocities.push_back(all.velocities[i]);
    some.masses.push_back(all.masses[i]);
    some.ids.push_back(all.ids[i]);
  }
  return some;
}

void compute_forces(const Options& given) {
  ReadReport report;
  Snapshot snapshot = read_snapshot(given.snapshot, &report);
  print_notes(report.notes);
  const Config config = forces_config(given, snapshot.header);
  const Prepared run = prepare(config, std::move(snapshot));
  print_notes(run.notes);
  use_device(run.config);
  fmt::print("{}\n", device_text());

  const ForceMethod method = given.direct  ? ForceMethod::kDirect
                             : given.ewald ? ForceMethod::kEwald
                                           : ForceMethod::kRun;
  const std::vector<std::size_t> targets = spread_targets(run.particles, given.targets);
  const auto begin = std::chrono::steady_clock::now();
  const SetForces forces = forces_of(run, method, targets);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("forces on {} of {} particles in {:.2f} s\n", targets.size(), run.particles, seconds.count());

  WriteOptions write;
  write.overwrite = run.config.run.overwrite;
  write.deflate = static_cast<int>(run.config.output.compression);
  const std::vector<ExtraDataset> extras = {acceleration_dataset(forces.acceleration, run.initial.header),
                                            potential_dataset(forces.potential, run.initial.header)};
  const bool all = targets.size() == run.particles;
  for (const std::string& file :
       write_snapshot(given.output, all ? run.initial : select_particles(run.initial, targets),
                      provenance(to_toml(run.config), device_text()), write, extras)) {
    fmt::print("wrote {}\n", file);
  }
}

}  // namespace

void add_forces_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(program, "forces", "Write accelerations and potentials of a snapshot's particles",
                                  "maki forces output/snapshot_003.hdf5 -o forces.hdf5 run.preset=precise softening=20",
                                  options, on_first_rank(compute_forces));
  command->add_option("SNAPSHOT", options->snapshot, "HDF5 or GADGET binary")->required();
  command->add_option("KEY=VALUE", options->settings, "settings, as for 'maki run'");
  command->add_option("-o,--output", options->output, "file to write; run.overwrite=true replaces one")->required();
  command->add_option("--config", options->config, "take gravity's settings from this configuration");
  auto* direct =
      command->add_flag("--direct", options->direct, "isolated sets: sum over all pairs in double precision");
  command->add_flag("--ewald", options->ewald, "periodic boxes: Ewald's sum over all images in double precision")
      ->excludes(direct);
  command->add_option("--targets", options->targets, "only this many particles, evenly spread; they alone are written")
      ->check(CLI::PositiveNumber);
}

}  // namespace maki
