#include <fmt/format.h>

#include <optional>

#include "host/comm/agree.hpp"
#include "host/comm/job.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/memory.hpp"
#include "src/cli/build.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/estimate.hpp"
#include "src/cli/products.hpp"
#include "src/config/check.hpp"
#include "src/config/names.hpp"
#include "src/config/parse.hpp"
#include "src/config/print.hpp"
#include "src/config/resolve.hpp"

namespace maki {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> settings;
  bool estimate = false;
};

RunFileOptions file_options(const Prepared& run) {
  const Config& config = run.config;
  RunFileOptions options;
  options.directory = *config.run.output_directory;
  options.overwrite = config.run.overwrite;
  options.compression = static_cast<int>(config.output.compression);
  options.metrics_interval = static_cast<int>(config.output.metrics_interval);
  if (config.run.time_limit)
    options.time_limit = number_of(*config.run.time_limit, "run.time_limit", config, run.units);
  return options;
}

// What is about to happen, in a few lines; the device is that of the first rank.
std::vector<std::string> summary(const Prepared& run) {
  const Config& config = run.config;
  const Config::Gravity& gravity = config.gravity;
  const bool comoving = config.run.kind == RunKind::kCosmology;
  const std::string unit = length_unit_name(run.units);
  std::vector<std::string> lines = {device_text()};
  lines.push_back(fmt::format("{}: {} particles, box {:g}{}, softening {}, preset {}, output in {}", config.run.name,
                              run.particles, run.side, unit.empty() ? "" : " " + unit, to_string(*gravity.softening),
                              name_of(config.run.preset), *config.run.output_directory));
  if (comoving) {
    lines.push_back(
        fmt::format("mesh {0}^3 ({1}, {2} interlacing, {3}), {4} split{5}, r_cut {6} cells, theta {7}", *gravity.mesh,
                    name_of(*gravity.assignment), name_of(*gravity.interlacing), name_of(*gravity.gradient),
                    name_of(*gravity.split),
                    *gravity.split == Split::kPolynomial ? fmt::format(" n = {}", *gravity.split_order) : "",
                    *gravity.r_cut, *gravity.theta));
    lines.push_back(fmt::format("z = {:g} to {:g}", run.start_redshift, config.time.end_redshift));
  } else {
    lines.push_back(fmt::format("{}, theta {}, t = {:g} to {}", name_of(gravity.method), *gravity.theta,
                                run.initial.header.time, to_string(config.time.end_time)));
  }
  lines.insert(lines.end(), run.notes.begin(), run.notes.end());
  return lines;
}

void print_lines(std::FILE* out, const std::vector<std::string>& lines) {
  if (Communicator::world().rank() > 0) return;
  for (const std::string& line : lines) fmt::print(out, "{}\n", line);
}

// Selects the device; where any rank has none, why, on all ranks. Collective.
std::string missing_device(const Config& config, const Communicator& ranks) {
  std::string problem;
  try {
    use_device(config);
  } catch (const DeviceError& error) {
    problem = error.what();
  }
  for (const std::string& one : gather_texts(ranks, problem))
    if (!one.empty()) return one;
  return {};
}

// Nothing is made, read or written for it. It is told without a GPU too, and then says less.
void print_estimate(const Config& config) {
  check_kinds(config);
  if (config.run.kind == RunKind::kCosmology && config.initial.kind != InitialKind::kFile) prepare(config, false);
  const Communicator ranks = Communicator::world();
  const std::uint64_t particles = planned_particles(config, ranks);
  const MemoryEstimate estimate = estimate_memory(config, particles, ranks.size());
  std::optional<MachineMemory> memory;
  const std::string problem = missing_device(config, ranks);
  if (problem.empty()) memory = machine_memory(ranks);
  print_lines(stdout, describe(config, estimate, particles, memory ? &*memory : nullptr));
  if (!problem.empty()) print_lines(stdout, {problem});
}

struct Admission {
  std::vector<std::string> notes;
  std::size_t list_budget = 0;
};

// Before anything is allocated or written. All ranks come to the same verdict.
Admission admit(const Config& config, const Communicator& ranks) {
  check_kinds(config);
  const std::uint64_t particles = planned_particles(config, ranks);
  const MemoryEstimate estimate = estimate_memory(config, particles, ranks.size());
  const MachineMemory memory = machine_memory(ranks);
  Admission admission;
  try {
    admission.notes = require_memory(config, estimate, particles, memory);
  } catch (const Error&) {
    print_lines(stderr, describe(config, estimate, particles, &memory));
    throw;
  }
  admission.list_budget = list_budget(config, particles, memory);
  if (memory.shared && !config.run.ignore_memory) pool_set_limit(static_cast<std::size_t>(0.95 * memory.device_free));
  return admission;
}

void run_simulation(const Options& given) {
  const Config config = load_config(given.config, given.settings);
  if (given.estimate) return print_estimate(config);
  const Communicator ranks = Communicator::world();
  use_device(config);
  const Admission admission = admit(config, ranks);
  Prepared run = prepare(config);
  RunProducts files(file_options(run), provenance(to_toml(run.config), device_text()), run, ranks);
  if (ranks.size() > 1) files.message(describe_ranks(ranks));
  for (const std::string& line : summary(run)) files.message(line);
  for (const std::string& line : admission.notes) files.message(line);
  Timeline timeline = run.initial.header.comoving ? Timeline::comoving(cosmology_parameters(run.config), run.units)
                                                  : Timeline::newtonian();
  pool_watch({{"mesh.", "fft."}});
  const Stream stream;
  SimulationOptions options = simulation_options(run);
  if (!config.gravity.list_memory) options.gravity.list_budget = admission.list_budget;
  Simulation simulation(stream, std::move(run.initial), options, std::move(timeline), files, ranks);
  const RunResult result = simulation.run();
  files.finish(result, simulation.timers());
  if (!result.stopped_by.empty()) throw CLI::RuntimeError(kExitStopped);
}

}  // namespace

void add_run_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(program, "run", "Run a simulation",
                                  "maki run configs/quickstart.toml initial.seed=7 output_directory=output/seven",
                                  options, run_simulation);
  command->add_option("CONFIG", options->config, "configuration (TOML)")->required();
  command->add_option("KEY=VALUE", options->settings,
                      "settings that override the file's: section.key=value, or key=value");
  command->add_flag("--estimate", options->estimate,
                    "say how much memory and disk the run will take and how large it could be here, and do not run");
}

}  // namespace maki
