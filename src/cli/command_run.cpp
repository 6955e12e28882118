#include <fmt/format.h>

#include <optional>

#include "host/comm/agree.hpp"
#include "host/comm/job.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/config/check.hpp"
#include "src/config/parse.hpp"
#include "src/config/print.hpp"
#include "src/run/build.hpp"
#include "src/run/estimate.hpp"
#include "src/run/products.hpp"
#include "src/run/sites/open_sites.hpp"
#include "src/run/sites/site_share.hpp"
#include "src/run/start_run.hpp"

namespace maki {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> settings;
  std::string site;
  bool estimate = false;
};

// Selects the device. Where any rank has none, returns the reason on all ranks. Collective.
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

// The estimate makes, reads and writes nothing. Without a GPU it leaves out what depends on the device.
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
  const std::string step = step_estimate(modelled_run(config, particles, ranks));
  if (!step.empty()) print_lines(stdout, {step});
  if (!problem.empty()) print_lines(stdout, {problem});
}

// Prepares the initial conditions of this site's slab, on its ranks, once all sites are there.
void take_share(Prepared& run, const Config& config, sites::Sites& sites, const Communicator& ranks) {
  const bool unmade = config.run.kind == RunKind::kCosmology && config.initial.kind != InitialKind::kFile;
  at_all_sites(sites, [&] {
    if (unmade) run = prepare(config);
  });
  keep_own_slab(run, sites, ranks);
}

void run_simulation(const Options& given) {
  Config config = load_config(given.config, given.settings);
  if (given.estimate) return print_estimate(config);
  const ThisSite site = choose_site(config, given.site);
  const Communicator ranks = Communicator::world();
  use_device(config);
  const Admission admission = admit(config, ranks);
  Prepared run = prepare(config, !site.over_sites());
  if (site.over_sites()) first_slabs(run, site.count);
  const OpenSites ring = open_sites(run.config, site, ranks, "", {}, say_now);
  if (site.over_sites()) take_share(run, config, *ring.sites, ranks);
  std::optional<RunProducts> files;
  const RunPlace place{ranks, *ring.sites};
  at_all_sites(*ring.sites, [&] {
    files.emplace(run_file_options(run, ring.run), provenance(to_toml(run.config), device_text()), run, place);
  });
  if (ranks.size() > 1) files->message(describe_ranks(ranks));
  for (const auto& lines : {ring.describe(), summary(run), admission.notes})
    for (const std::string& line : lines) files->message(line);
  pool_watch({{"mesh.", "fft."}});
  const Stream stream;
  SimulationOptions options = simulation_options(run);
  if (!config.gravity.list_memory) options.gravity.list_budget = admission.list_budget;
  Timeline timeline = timeline_of(run);
  Simulation simulation(stream, std::move(run.initial), options, std::move(timeline), *files, place);
  const RunResult result = simulation.run();
  files->finish(result, simulation.timers());
  if (!result.site_lost) ring.sites->close();
  if (const int code = exit_code(result)) throw CLI::RuntimeError(code);
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
  command->add_option("--site", options->site, "which of the sites in [sites] this is, in a run over several of them")
      ->type_name("NAME");
  command->add_flag(
      "--estimate", options->estimate,
      "say how much memory and disk the run will take, with run.machine how long a step, and how large it could be "
      "here, and do not run");
}

}  // namespace maki
