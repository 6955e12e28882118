#include "src/run/start_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/comm/communicator.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/config/site_tables.hpp"
#include "src/io/json.hpp"
#include "src/run/build.hpp"
#include "src/run/estimate.hpp"
#include "src/run/initial_sets.hpp"
#include "src/run/run_options.hpp"

namespace maki {

Admission admit(const Config& config, const Communicator& ranks, std::optional<std::uint64_t> known) {
  check_kinds(config);
  const std::uint64_t particles = known ? *known : planned_particles(config, ranks);
  modelled_run(config, particles, ranks);  // an invalid machine is refused before particles are made
  const MemoryEstimate estimate = estimate_memory(config, particles, ranks.size());
  pool_trim();  // memory of earlier runs in the same process
  const MachineMemory memory = machine_memory(ranks);
  Admission admission;
  try {
    admission.notes = require_memory(config, estimate, particles, memory);
  } catch (const Error&) {
    print_lines(stderr, describe(config, estimate, particles, &memory));
    throw;
  }
  const std::string disk = disk_note(config, estimate, free_disk(config.run.output_directory.value_or("output")));
  if (!known && !disk.empty()) admission.disk.push_back(disk);  // a resumed run has some files on the disk already
  const double uneven = most_uneven(config, particles, memory);
  admission.list_budget = list_budget(config, particles, memory, uneven);
  // In deterministic isolated runs the bits depend on the domains, so these must not depend on the free memory.
  const bool bits_of_domains = config.run.deterministic && config.run.kind == RunKind::kIsolated;
  if (uneven < kMostUneven && !bits_of_domains)
    admission.most_particles =
        static_cast<std::uint64_t>(uneven * static_cast<double>(particles) / estimate.everywhere());
  if (!config.run.ignore_memory)  // the rest is for code of kernels, plans of transforms, and other programs
    pool_set_limit(pool_report().reserved_here + static_cast<std::size_t>(0.95 * memory.device_free));
  return admission;
}

SimulationOptions simulation_options(const Prepared& run, const Admission& admission) {
  SimulationOptions options = simulation_options(run);
  options.gravity.most_particles = admission.most_particles;
  if (!run.config.gravity.list_memory) options.gravity.list_budget = admission.list_budget;
  return options;
}

int leave_sites(const OpenSites& ring, const RunResult& result) {
  if (result.site_lost) return result.stopped_by == kStopFileReason ? kExitStopped : kExitSiteLost;
  try {
    gather_texts(*ring.sites, "");
  } catch (const sites::SiteLost& lost) {
    say_now(fmt::format("{}. Its files may not be complete: maki resume at all sites.", lost.what()));
    return kExitSiteLost;
  }
  ring.sites->close();
  return result.stopped_by.empty() ? 0 : kExitStopped;
}

std::optional<ModelledRun> modelled_run(Config config, std::uint64_t particles, const Communicator& ranks) {
  if (config.run.kind != RunKind::kCosmology) return {};
  resolve_presets(config, particles);
  ModelledRun modelled;
  model::MakiRun& run = modelled.run;
  run.particles = static_cast<double>(particles);
  run.cells = std::pow(static_cast<double>(*config.gravity.mesh), 3);
  run.cut = *config.gravity.r_cut;
  run.sites = std::max(1, static_cast<int>(config.sites.ring.size()));
  run.ranks = static_cast<double>(ranks.size()) * run.sites;
  if (!config.run.machine) return modelled;
  root_succeeds(ranks, [&] {
    modelled.machine = read_machine(*config.run.machine);
    maki_step(run, *modelled.machine);  // throws where the machine lacks constants
  });
  return modelled;
}

std::string step_estimate(const std::optional<ModelledRun>& modelled) {
  if (!modelled || !modelled->machine) return {};
  const model::MakiStep step = maki_step(modelled->run, *modelled->machine);
  return fmt::format(
      "a step: {:.3g} s with new lists, {:.3g} s with kept ones, {:.3g} s more with the mesh (maki model, '{}')",
      step.rebuild_step(), step.kept_step(), step.long_part(), modelled->machine->name);
}

WriteOptions whole_set_options(const Config& config, SnapshotFormat format) {
  const Config::Output& output = config.output;
  WriteOptions options;
  options.format = format;
  options.files = static_cast<int>(output.files);
  const bool hdf5 = format == SnapshotFormat::kGadgetHdf5;
  if (hdf5 || output.coordinates == CoordinateNumbers::kFloat) options.coordinates = output.coordinates;
  if (hdf5) options.layout = output.layout;
  options.deflate = static_cast<int>(output.compression);
  return options;
}

WriteOptions snapshot_options(const Config& config) {
  const Config::Output& output = config.output;
  WriteOptions options = whole_set_options(config);
  options.velocities = output.velocities;
  options.fields = output.fields;
  options.selection.fraction = output.subset;
  options.selection.in_groups = config.run.kind == RunKind::kCosmology && output.groups_only;
  return options;
}

RunFileOptions run_file_options(const Prepared& run, const std::string& name, std::vector<std::string> settings) {
  const Config& config = run.config;
  RunFileOptions options;
  options.directory = *config.run.output_directory;
  if (config.run.progress == ProgressKind::kNone) options.progress = nullptr;
  options.json_progress = config.run.progress == ProgressKind::kJson;
  options.run = name;
  if (config.run.kind == RunKind::kIsolated) options.time_unit = time_unit(config, run.units);
  options.settings = std::move(settings);
  options.overwrite = config.run.overwrite;
  if (config.initial.kind == InitialKind::kFile) options.initial_file = config.initial.file;
  options.snapshots = snapshot_options(config);
  options.metrics_interval = static_cast<int>(config.output.metrics_interval);
  const auto seconds = [&](const Quantity& time, const char* key) { return number_of(time, key, config, run.units); };
  if (config.run.time_limit) options.time_limit = seconds(*config.run.time_limit, "run.time_limit");
  options.restart_interval = seconds(config.run.restart_interval, "run.restart_interval");
  options.restart_steps = static_cast<std::uint64_t>(config.run.restart_steps);
  options.site_keys = key_settings(config);
  options.restarts_kept = static_cast<int>(config.run.restarts_kept);
  options.modelled = modelled_run(config, run.particles, Communicator::world());
  const bool comoving = config.run.kind == RunKind::kCosmology;
  options.facts = {run.particles, comoving ? static_cast<int>(config.gravity.mesh.value_or(0)) : 0,
                   config.gravity.theta.value_or(0)};
  return options;
}

namespace {

// "omega0 0.308, omega_lambda 0.692, h 0.678, sigma8 0.829; in the mean 1.03e+10 Msun/h a particle".
std::string cosmology_text(const Prepared& run) {
  const CosmologyParameters cosmology = cosmology_parameters(run.config);
  const double curvature = cosmology.omega_curvature();
  std::string text = fmt::format("omega0 {:g}, omega_lambda {:g}{}{}, h {:g}", cosmology.omega0, cosmology.omega_lambda,
                                 std::fabs(curvature) < 1e-6 ? "" : fmt::format(", curvature {:.3g}", curvature),
                                 cosmology.beyond_lambda(), cosmology.hubble);
  if (run.config.initial.kind == InitialKind::kLpt)
    text +=
        fmt::format(", sigma8 {:.4g}", linear_power(run.config, run.units).sigma(8 * kMpcCgs / run.units.length_cgs));
  const double mass = Cosmology(cosmology, run.units).mean_density() * run.side * run.side * run.side;
  return text + fmt::format("; in the mean {:.3g} Msun/h a particle",
                            mass / static_cast<double>(run.particles) * run.units.mass_cgs / kSolarMassCgs);
}

}  // namespace

std::vector<std::string> summary(const Prepared& run) {
  const Config& config = run.config;
  const Config::Gravity& gravity = config.gravity;
  const bool comoving = config.run.kind == RunKind::kCosmology;
  const std::string unit = unit_name(run.units, Dimension::kLength);
  std::vector<std::string> lines = {device_text()};
  lines.push_back(fmt::format("{}: {} particles, box {:g}{}, {}, preset {}, output in {}", config.run.name,
                              run.particles, run.side, unit.empty() ? "" : " " + unit, softening_text(run),
                              name_of(config.run.preset), *config.run.output_directory));
  if (comoving) {
    lines.push_back(
        fmt::format("mesh {0}^3 ({1}, {2} interlacing, {3}), {4} split{5}, r_cut {6} cells, theta {7}", *gravity.mesh,
                    name_of(*gravity.assignment), name_of(*gravity.interlacing), name_of(*gravity.gradient),
                    name_of(*gravity.split),
                    *gravity.split == Split::kPolynomial ? fmt::format(" n = {}", *gravity.split_order) : "",
                    *gravity.r_cut, *gravity.theta));
    lines.push_back(cosmology_text(run));
    lines.push_back(fmt::format("z = {:g} to {:g}", run.start_redshift, config.time.end_redshift));
  } else {
    const TimeUnit times = time_unit(config, run.units);
    const double end = number_of(config.time.end_time, "time.end_time", config, run.units);
    lines.push_back(fmt::format("{}, theta {}, t = {:g} to {}", name_of(gravity.method), *gravity.theta,
                                run.initial.header.time / times.length, time_text(end, times)));
  }
  lines.insert(lines.end(), run.notes.begin(), run.notes.end());
  return lines;
}

void print_lines(std::FILE* out, const std::vector<std::string>& lines) {
  if (Communicator::world().rank() > 0) return;
  for (const std::string& line : lines)
    std::fprintf(out, "%s\n", line.c_str());  // fmt's print throws where it is closed
}

void say_now(const std::string& line) {
  print_lines(stdout, {line});
  std::fflush(stdout);
}

std::function<void(const std::string&)> announcer(const Config& config) {
  return [kind = config.run.progress](const std::string& line) {
    if (kind != ProgressKind::kNone)
      say_now(kind == ProgressKind::kJson ? JsonObject().add("message", line).text() : line);
  };
}

}  // namespace maki
