#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "host/comm/job.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/memory.hpp"
#include "src/cli/build.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/products.hpp"
#include "src/cli/start_run.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/config/print.hpp"
#include "src/config/resolve.hpp"
#include "src/io/restart.hpp"

namespace maki {
namespace {

struct Options {
  std::string directory;
  std::vector<std::string> settings;
};

// The last one, or that which the user names.
RestartInfo choose(const std::string& directory, const Communicator& ranks) {
  const std::vector<RestartInfo> found = find_restarts(directory, ranks);
  if (found.empty())
    throw Error(fmt::format("there is nothing to resume in '{}'", directory), "it holds no complete restart",
                "give the output directory of a run that was stopped (run.restart_interval, run.restart_steps), or "
                "begin with maki run");
  require_known_format(found.back());
  return found.back();
}

// What a run is made of stays; how it goes on may change.
void check_unchanged(const Config& before, const Config& now) {
  for (const Key& key : config_keys()) {
    const bool fixed = key.section == "units" || key.section == "box" || key.section == "cosmology" ||
                       key.section == "initial" || key.path() == "run.kind";
    if (!fixed || key.get(before) == key.get(now)) continue;
    throw Error(fmt::format("{} = {} would make another run", key.path(), key.get(now)),
                fmt::format("the run to resume was begun with {}", key.get(before)),
                "leave it out, or begin with maki run");
  }
}

Config configuration(const RestartInfo& info, const std::vector<std::string>& settings) {
  const std::string name = info.path + "/complete.toml";
  const Config before = parse_config(info.provenance.configuration, name);
  Config config = parse_config(info.provenance.configuration, name, settings);
  check_unchanged(before, config);
  config.run.output_directory = std::filesystem::path(info.path).parent_path().string();
  return config;
}

KeptState read_state(const RestartInfo& info, const Communicator& ranks) {
  Restart restart = read_restart(info, ranks);
  KeptState kept{from_numbers(restart.numbers), std::move(restart.particles), std::move(restart.escapers)};
  if (info.sites == 1 && info.total() != kept.state.field.total)
    throw Error(fmt::format("'{}' is damaged", info.path),
                fmt::format("its files hold {} particles, and the run had {}", info.total(), kept.state.field.total),
                "remove it and resume from an earlier restart");
  return kept;
}

// As prepare() leaves it, without particles.
Prepared prepare_again(Config config, const RunState& state) {
  Prepared run;
  run.config = std::move(config);
  run.initial.header = state.header;
  run.particles = state.field.total + state.field.escapers;
  run.units = state.header.units;
  run.gravitational_constant = state.frame.gravitational_constant;
  const bool from_file = run.config.initial.kind == InitialKind::kFile;
  resolve(run.config, {run.particles, from_file ? &state.header : nullptr, 0}, run.notes);
  run.side = number_of(*run.config.box.size, "box.size", run.config, run.units);
  for (std::size_t axis = 0; axis < 3; ++axis) run.centre[axis] = state.frame.corner[axis] + state.frame.side / 2;
  if (state.header.comoving) run.start_redshift = 1 / state.file_time - 1;
  return run;
}

void resume_simulation(const Options& given) {
  const Communicator ranks = Communicator::world();
  const RestartInfo info = choose(given.directory, ranks);
  const Config config = configuration(info, given.settings);
  use_device(config);
  const Admission admission = admit(config, ranks, info.total());
  std::optional<KeptState> from = read_state(info, ranks);
  const Prepared run = prepare_again(config, from->state);
  RunFileOptions file = run_file_options(run);
  file.overwrite = true;  // of what the run had written after this restart; log and metrics are added to
  file.resumed_at = info.step;
  RunProducts files(file, provenance(to_toml(run.config), device_text()), run, ranks);
  files.message(fmt::format("Resumed from {}: step {}, {} = {:.6g}.", info.path, info.step,
                            run.initial.header.comoving ? "a" : "t", info.time));
  if (ranks.size() > 1) files.message(describe_ranks(ranks));
  for (const std::string& line : summary(run)) files.message(line);
  for (const std::string& line : admission.notes) files.message(line);
  Timeline timeline = timeline_of(run);
  pool_watch({{"mesh.", "fft."}});
  const Stream stream;
  SimulationOptions options = simulation_options(run);
  if (!config.gravity.list_memory) options.gravity.list_budget = admission.list_budget;
  take_plans(info, ranks);
  Simulation simulation(stream, *from, options, std::move(timeline), files, ranks);
  from.reset();
  for (const std::string& name : remove_restarts_after(*config.run.output_directory, info.step, ranks))
    files.message(fmt::format("{} is of a later step and is removed.", name));
  const RunResult result = simulation.run();
  files.finish(result, simulation.timers());
  if (!result.stopped_by.empty()) throw CLI::RuntimeError(kExitStopped);
}

}  // namespace

void add_resume_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(program, "resume", "Go on with a run that was stopped or ended by force",
                                  "maki resume output/quickstart", options, resume_simulation);
  command->add_option("DIRECTORY", options->directory, "output directory of the run, or one of the restarts in it")
      ->required();
  command->add_option("KEY=VALUE", options->settings, "settings that change from here on");
}

}  // namespace maki
