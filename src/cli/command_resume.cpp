#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "host/comm/communicator.hpp"
#include "host/comm/job.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/resume.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/config/presets.hpp"
#include "src/config/resolve.hpp"
#include "src/io/restart.hpp"
#include "src/run/build.hpp"
#include "src/run/over_sites.hpp"
#include "src/run/products.hpp"
#include "src/run/start_run.hpp"

namespace maki {
namespace {

struct Options {
  std::string directory;
  std::vector<std::string> settings;
  std::string site;
};

// Throws Error where settings differ that a run cannot change on the way, such as its initial conditions.
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

Config configuration_before(const RestartInfo& info) {
  return parse_config(info.provenance.configuration, info.path + "/complete.toml");
}

KeptState read_state(const RestartInfo& info, const Communicator& ranks) {
  Restart restart = read_restart(info, ranks, true);
  return {from_numbers(restart.numbers), std::move(restart.particles), std::move(restart.escapers)};
}

std::uint64_t particles_of(const RunState& state) { return state.field.total + state.field.escapers; }

// A run as prepare() returns it, without particles.
Prepared prepare_again(Config config, const RunState& state) {
  Prepared run;
  run.config = std::move(config);
  run.initial.header = state.header;
  run.particles = particles_of(state);
  run.units = state.header.units;
  run.gravitational_constant = state.frame.gravitational_constant;
  const bool from_file = run.config.initial.kind == InitialKind::kFile;
  resolve(run.config, {run.particles, from_file ? &state.header : nullptr, 0}, run.notes);
  run.side = number_of(*run.config.box.size, "box.size", run.config, run.units);
  for (std::size_t axis = 0; axis < 3; ++axis) run.centre[axis] = state.frame.corner[axis] + state.frame.side / 2;
  if (state.header.comoving) run.start_redshift = 1 / state.file_time - 1;
  return run;
}

RunFileOptions files_of(const Prepared& run, const RestartInfo& info, const std::vector<std::string>& settings) {
  RunFileOptions options = run_file_options(run, info.run, settings);
  options.overwrite = true;  // of files that the run wrote after this restart; log and metrics are continued
  options.resumed_at = info.step;
  return options;
}

// The steps before the run goes on that may fail at one site alone.
struct Ready {
  RestartInfo info;
  std::optional<KeptState> from;
  Admission admission;
  Prepared run;
  std::optional<RunProducts> files;
};
void make_ready(Ready& ready, Config config, const std::vector<std::string>& settings, const RunPlace& place) {
  ready.from = read_state(ready.info, place.ranks);
  choose_again(config, configuration_before(ready.info), particles_of(ready.from->state));
  ready.admission = admit(config, place.ranks, ready.from->state.field.total);
  ready.run = prepare_again(config, ready.from->state);
  take_plans(ready.info, place.ranks);
  ready.files.emplace(files_of(ready.run, ready.info, settings), provenance(to_toml(ready.run.config), device_text()),
                      ready.run, place);
}

void resume_simulation(const Options& given) {
  const Communicator ranks = Communicator::world();
  const RestartsThere there = restarts_in(given.directory, ranks);
  require_restart(there, given.directory);
  const RestartInfo& newest = there.own.back();
  Config config = configuration_of(newest, given.settings);
  const ThisSite site = choose_site(config, given.site);
  check_place(newest, site);
  use_device(config);
  const Offer offer{kResume, there.run, steps_of(there.own)};
  const OpenSites ring = open_sites(config, site, ranks, offer, announcer(config));
  go_on(std::move(config), given.settings, there, ring, ranks);
}

}  // namespace

Config configuration_of(const RestartInfo& info, std::vector<std::string> settings) {
  const std::string name = info.path + "/complete.toml";
  const Config before = configuration_before(info);
  settings.insert(settings.begin(), info.site_keys.begin(), info.site_keys.end());
  Config config = parse_config(info.provenance.configuration, name, settings);
  check_unchanged(before, config);
  config.run.output_directory = std::filesystem::path(info.path).parent_path().string();
  return config;
}

void check_place(const RestartInfo& info, const ThisSite& site) {
  if (info.sites == site.count && info.site == site.place) return;
  throw Error(fmt::format("'{}' is the restart of another site", info.path),
              fmt::format("of number {} of {} in the ring, and this is number {} of {}", info.site + 1, info.sites,
                          site.place + 1, site.count),
              "give the directory of this site, and the same sites.ring");
}

void go_on(Config config, const std::vector<std::string>& settings, const RestartsThere& there, const OpenSites& ring,
           const Communicator& ranks) {
  std::vector<std::string> words;
  for (const std::string& folder : there.damaged)
    words.push_back(fmt::format("'{}' is damaged (complete.toml): the one before has to serve.", folder));
  Ready ready;
  ready.info = newest_whole(there.own, ring, ranks, [&](const std::string& text) { words.push_back(text); });
  const RunPlace place{ranks, *ring.sites};
  at_all_sites(*ring.sites, [&] { make_ready(ready, config, settings, place); });
  RunProducts& files = *ready.files;
  for (const std::string& text : words) files.message(text);
  files.message(fmt::format("Resumed from {}: step {}, {} = {:.6g}.", ready.info.path, ready.info.step,
                            ready.run.initial.header.comoving ? "a" : "t", ready.info.time));
  if (ranks.size() > 1) files.message(describe_ranks(ranks));
  for (const auto& lines : {ring.describe(), summary(ready.run), ready.admission.notes})
    for (const std::string& line : lines) files.message(line);
  pool_watch({{"mesh.", "fft."}});
  const Stream stream;
  SimulationOptions options = simulation_options(ready.run);
  if (!config.gravity.list_memory) options.gravity.list_budget = ready.admission.list_budget;
  Simulation simulation(stream, *ready.from, options, timeline_of(ready.run), files, place);
  ready.from.reset();
  for (const std::string& name : remove_restarts_after(*config.run.output_directory, ready.info.step, ranks))
    files.message(fmt::format("{} is of a later step and is removed.", name));
  const RunResult result = simulation.run();
  files.finish(result, simulation.timers());
  files.report();
  if (const int code = leave_sites(ring, result)) throw CLI::RuntimeError(code);
}

void add_resume_command(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(program, "resume", "Go on with a run that was stopped or ended by force",
                                  "maki resume output/quickstart", options, resume_simulation);
  command->add_option("DIRECTORY", options->directory, "output directory of the run, or one of the restarts in it")
      ->required();
  command->add_option("KEY=VALUE", options->settings, "settings that change from here on");
  command->add_option("--site", options->site, "which of the sites in [sites] this is, in a run over several of them")
      ->type_name("NAME");
}

}  // namespace maki
