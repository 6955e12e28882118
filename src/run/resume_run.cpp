// A run that goes on from a restart.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "host/comm/communicator.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/config/presets.hpp"
#include "src/config/resolve.hpp"
#include "src/io/restart.hpp"
#include "src/run/build.hpp"
#include "src/run/filed_run.hpp"

namespace maki {
namespace {

// The name of the run whose metrics lie beside the restarts. Where there are none, all restarts have to be of one run.
std::string run_beside(const std::vector<RestartInfo>& found, const Communicator& ranks) {
  std::string name;
  root_succeeds(ranks, [&] {
    const std::string directory = std::filesystem::path(found.back().path).parent_path().string();
    name = run_in(directory).value_or(found.back().run);
    const auto is_other = [&](const RestartInfo& info) { return info.run != name; };
    if (!run_in(directory) && std::any_of(found.begin(), found.end(), is_other))
      throw Error(fmt::format("'{}' holds restarts of several runs", directory),
                  "metrics.jsonl, which says whose it is, is missing",
                  "name the restart to go on from, moved to a directory of its own");
  });
  return broadcast_text(ranks, name);
}

// Removes restarts of other runs than the directory's.
void keep_own(std::vector<RestartInfo>& found, const Communicator& ranks) {
  const std::string run = run_beside(found, ranks), last = found.back().path;
  std::erase_if(found, [&](const RestartInfo& info) { return info.run != run; });
  if (found.empty())
    throw Error(fmt::format("'{}' is a restart of another run", last), "metrics.jsonl beside it names its own",
                "move the restart to an empty directory to go on from it, or begin with maki run");
}

// All complete restarts, or the one that the user names.
std::vector<RestartInfo> look_for(const std::string& directory, const Communicator& ranks) {
  std::vector<RestartInfo> found = find_restarts(directory, ranks);
  if (found.empty())
    throw Error(fmt::format("there is nothing to resume in '{}'", directory), "it holds no complete restart",
                "give the output directory of a run that was stopped (run.restart_interval, run.restart_steps), or "
                "begin with maki run");
  keep_own(found, ranks);
  require_known_format(found.back());
  return found;
}

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

Config configuration(const RestartInfo& info, std::vector<std::string> settings, const std::string& from) {
  const std::string name = info.path + "/complete.toml";
  const Config before = configuration_before(info);
  settings.insert(settings.begin(), info.site_keys.begin(), info.site_keys.end());
  Config config = parse_config(info.provenance.configuration, name, settings, from);
  check_unchanged(before, config);
  config.run.output_directory = std::filesystem::path(info.path).parent_path().string();
  return config;
}

KeptState read_state(const RestartInfo& info, const Communicator& ranks) {
  Restart restart = read_restart(info, ranks);
  return {from_numbers(restart.numbers), std::move(restart.particles), std::move(restart.escapers)};
}

void check_place(const RestartInfo& info, const ThisSite& site) {
  if (info.sites == site.count && info.site == site.place) return;
  throw Error(fmt::format("'{}' is the restart of another site", info.path),
              fmt::format("of number {} of {} in the ring, and this is number {} of {}", info.site + 1, info.sites,
                          site.place + 1, site.count),
              "give the directory of this site, and the same sites.ring");
}

// Opens the other sites; leaves in `found` only the restart that all have.
OpenSites agree(const Config& config, const ThisSite& site, const Communicator& ranks,
                std::vector<RestartInfo>& found) {
  std::vector<std::uint64_t> steps;
  for (const RestartInfo& info : found) steps.push_back(info.step);
  OpenSites ring = open_sites(config, site, ranks, found.back().run, steps, say_now);
  if (!site.over_sites()) return ring;
  std::erase_if(found, [&](const RestartInfo& info) { return info.step != ring.restart; });
  at_all_sites(*ring.sites, [&] {
    if (found.empty())
      throw Error("the sites have no restart in common", fmt::format("here there are steps {}", fmt::join(steps, ", ")),
                  "give the directories of the same run at all sites, or begin with maki run");
  });
  return ring;
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

RunFileOptions files_of(const Prepared& run, const RestartInfo& info, const FiledRun::Options& given) {
  RunFileOptions options = run_file_options(run, info.run);
  options.progress = given.progress;
  options.signals = given.signals;
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
};
void make_ready(Ready& ready, Config config, const RunPlace& place) {
  ready.from = read_state(ready.info, place.ranks);
  choose_again(config, configuration_before(ready.info), particles_of(ready.from->state));
  ready.admission = admit(config, place.ranks, ready.from->state.field.total);
  ready.run = prepare_again(config, ready.from->state);
  take_plans(ready.info, place.ranks);
}

}  // namespace

std::unique_ptr<FiledRun> FiledRun::resume(const std::string& directory, const std::vector<std::string>& settings,
                                           const Options& options, const std::string& from) {
  const Communicator ranks = Communicator::world();
  std::vector<RestartInfo> found = look_for(directory, ranks);
  Config config = configuration(found.back(), settings, from);
  const ThisSite site = choose_site(config, options.site);
  check_place(found.back(), site);
  use_device(config);
  std::unique_ptr<FiledRun> run(new FiledRun);
  run->ring_ = agree(config, site, ranks, found);
  Ready ready;
  ready.info = found.back();
  const RunPlace place{ranks, *run->ring_.sites};
  at_all_sites(*run->ring_.sites, [&] {
    make_ready(ready, config, place);
    run->files_.emplace(files_of(ready.run, ready.info, options), provenance(to_toml(ready.run.config), device_text()),
                        ready.run, place);
  });
  RunProducts& files = *run->files_;
  files.message(fmt::format("Resumed from {}: step {}, {} = {:.6g}.", ready.info.path, ready.info.step,
                            ready.run.initial.header.comoving ? "a" : "t", ready.info.time));
  run->introduce(ready.run, ready.admission, ranks);
  SimulationOptions numbers = simulation_options(ready.run);
  if (!config.gravity.list_memory) numbers.gravity.list_budget = ready.admission.list_budget;
  run->simulation_.emplace(*run->stream_, *ready.from, numbers, timeline_of(ready.run), files, place);
  ready.from.reset();
  for (const std::string& name : remove_restarts_after(*config.run.output_directory, ready.info.step, ranks))
    files.message(fmt::format("{} is of a later step and is removed.", name));
  return run;
}

}  // namespace maki
