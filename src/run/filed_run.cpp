#include "src/run/filed_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "host/comm/communicator.hpp"
#include "host/comm/job.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/config/text.hpp"
#include "src/io/restart.hpp"
#include "src/io/restart_folder.hpp"
#include "src/io/run_directory.hpp"
#include "src/run/build.hpp"
#include "src/run/run_products.hpp"
#include "src/simulation/step_log.hpp"

namespace maki {
namespace {

namespace fs = std::filesystem;

// The name of the run whose metrics are beside the restarts. Without metrics, all restarts have to be of one run.
std::string run_beside(const std::string& directory, const std::vector<RestartInfo>& found, const Communicator& ranks) {
  std::string name;
  root_succeeds(ranks, [&] {
    const auto by_metrics = run_in(directory);
    name = by_metrics.value_or(found.empty() ? "" : found.back().run);
    const auto is_other = [&](const RestartInfo& info) { return info.run != name; };
    if (!by_metrics && std::any_of(found.begin(), found.end(), is_other))
      throw Error(fmt::format("'{}' holds restarts of several runs", directory),
                  "metrics.jsonl, which says whose it is, is missing",
                  "name the restart to go on from, moved to a directory of its own");
  });
  return broadcast_text(ranks, name);
}

// Removes restarts of other runs than the directory's.
void keep_own(RestartsThere& there) {
  if (there.own.empty()) return;
  const std::string last = there.own.back().path;
  std::erase_if(there.own, [&](const RestartInfo& info) { return info.run != there.run; });
  if (there.own.empty())
    throw Error(fmt::format("'{}' is a restart of another run", last), "metrics.jsonl beside it names its own",
                "move the restart to an empty directory to go on from it, or begin with maki run");
}

// Every site throws the same error: each waits for the messages of the others before it leaves.
[[noreturn]] void throw_at_all_sites(const OpenSites& ring, const Error& error) {
  ring.sites->close();
  throw error;
}

Config configuration_before(const RestartInfo& info) {
  return parse_config(info.provenance.configuration, info.path + "/complete.toml");
}

// The damage of a restart, with its light cones; empty where it is whole.
std::string damage_here(const RestartInfo& info, const Communicator& ranks) {
  if (std::string damage = damage_of(info, ranks); !damage.empty()) return damage;
  const std::string directory = fs::path(info.path).parent_path().string();
  return damage_of_light_cones(directory, configuration_before(info), info.step, ranks);
}

constexpr const char* kBeginAgain = "copy a whole one back, or begin again with maki run and run.overwrite = true";

// ---- what a resumed run may not change ------------------------------------------------------------------------------

// Throws Error where settings differ that a resumed run cannot change, such as its initial conditions.
void check_unchanged(const Config& before, const Config& now) {
  for (const Key& key : config_keys()) {
    const bool fixed = key.section == "units" || key.section == "box" || key.section == "cosmology" ||
                       key.section == "initial" || key.section == "lightcone" || key.path() == "run.kind";
    if (!fixed || key.get(before) == key.get(now)) continue;
    throw Error(fmt::format("{} = {} would make another run", key.path(), key.get(now)),
                fmt::format("the run to resume was begun with {}", key.get(before)),
                "leave it out, or begin with maki run");
  }
}

bool names_directory(const std::string& setting) {
  const std::string key = setting.substr(0, setting.find('='));
  return key == "run.output_directory" || key == "output_directory";
}

// Throws Error where a setting names another output directory than that of the restart, or where a configuration cannot
// hold its name.
void check_directory(const std::string& directory, const std::vector<std::string>& settings, const Config& config) {
  if (!is_utf8(directory))
    throw Error(fmt::format("the name of '{}' is not UTF-8", directory),
                "files of a run hold its configuration, in UTF-8", "give the directory another name");
  if (std::ranges::none_of(settings, names_directory) || !config.run.output_directory) return;
  const std::string& given = *config.run.output_directory;
  if (fs::weakly_canonical(given) == fs::weakly_canonical(directory)) return;
  throw Error(fmt::format("run.output_directory = \"{}\" is not where the run is", given),
              fmt::format("its restarts are in '{}', and it goes on there", directory),
              "leave it out; a run moves with its directory");
}

// The configuration of a restart with changed settings. Throws Error where these would make it another run.
Config configuration_of(const RestartInfo& info, std::vector<std::string> settings, const std::string& from) {
  const std::string name = info.path + "/complete.toml";
  const Config before = configuration_before(info);
  settings.insert(settings.begin(), info.site_keys.begin(), info.site_keys.end());
  Config config = parse_config(info.provenance.configuration, name, settings, from);
  check_unchanged(before, config);
  const std::string parent = std::filesystem::path(info.path).parent_path().string();
  const std::string directory = parent.empty() ? "." : parent;
  check_directory(directory, settings, config);
  config.run.output_directory = directory;
  return config;
}

KeptState read_state(const RestartInfo& info, const Communicator& ranks) {
  Restart restart = read_restart(info, ranks, true);
  return {from_numbers(restart.numbers), std::move(restart.particles), std::move(restart.escapers)};
}

void check_place(const RestartInfo& info, const ThisSite& site) {
  if (info.sites == site.count && info.site == site.place) return;
  throw Error(fmt::format("'{}' is the restart of another site", info.path),
              fmt::format("of number {} of {} in the ring, and this is number {} of {}", info.site + 1, info.sites,
                          site.place + 1, site.count),
              "give the directory of this site, and the same sites.ring");
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

RunFileOptions files_of(const Prepared& run, const RestartInfo& info, const std::vector<std::string>& settings,
                        const FiledRun::Options& given) {
  RunFileOptions options = run_file_options(run, info.run, settings);
  given.apply(options);
  options.overwrite = true;  // of files written after this restart; log and metrics continue
  options.resumed_at = info.step;
  return options;
}

// The steps before a run resumes that may fail at only one site.
struct Ready {
  RestartInfo info;
  std::optional<KeptState> from;
  Admission admission;
  Prepared run;
};
// The end of the run before is an output that it may have written: one with a later end does not take its number.
void keep_end(Config& config, const Config& before, const UnitSystem& units) {
  const auto end = [&](const Config& of) { return number_of(of.time.end_time, "time.end_time", of, units); };
  if (config.run.kind == RunKind::kCosmology) {
    if (config.time.end_redshift < before.time.end_redshift)
      config.output.redshifts.push_back(before.time.end_redshift);
  } else if (end(config) > end(before)) {
    config.output.times.push_back(end(before));
  }
}

void make_ready(Ready& ready, Config config, const RunPlace& place) {
  ready.from = read_state(ready.info, place.ranks);
  keep_end(config, configuration_before(ready.info), ready.from->state.header.units);
  choose_again(config, configuration_before(ready.info), particles_of(ready.from->state));
  ready.admission = admit(config, place.ranks, ready.from->state.field.total);
  ready.run = prepare_again(config, ready.from->state);
  take_plans(ready.info, place.ranks);
}

}  // namespace

RestartsThere restarts_in(const std::string& path, const Communicator& ranks) {
  RestartsThere there;
  there.own = find_restarts(path, ranks, &there.damaged);
  const std::string directory = there.own.empty() ? path : fs::path(there.own.back().path).parent_path().string();
  there.run = run_beside(directory, there.own, ranks);
  std::string ended;
  root_succeeds(ranks, [&] { ended = has_ended(path) ? "ended" : ""; });
  there.ended = !broadcast_text(ranks, ended).empty();
  keep_own(there);
  return there;
}

namespace {

// Throws Error where the directory holds what a run had come to, though no restart.
void require_no_state(const std::string& directory) {
  const auto is_state = [](const std::string& name) { return name.starts_with("stopped."); };
  const std::vector<std::string> files = files_of_a_run(directory);
  if (const auto state = std::ranges::find_if(files, is_state); state != files.end())
    throw Error(fmt::format("'{}' holds a stopped run without a restart", directory), "run.restarts_kept was 0",
                fmt::format("begin with initial.kind=file initial.file=.../{0} and another run.output_directory, or "
                            "remove {0}",
                            *state));
  if (const auto step = last_restart(directory))
    throw Error(fmt::format("the restarts of the run in '{}' are gone", directory),
                fmt::format("the last was restart_{:06}", *step),
                "copy it back, or begin again with maki run and run.overwrite = true, without --resume");
}

}  // namespace

void require_restart(const RestartsThere& there, const std::string& path) {
  if (there.own.empty() && !there.damaged.empty())
    throw Error(fmt::format("there is nothing to resume in '{}'", path),
                fmt::format("{} {} damaged, and no other restart is complete", fmt::join(there.damaged, ", "),
                            there.damaged.size() > 1 ? "are" : "is"),
                kBeginAgain);
  if (there.own.empty())
    throw Error(fmt::format("there is nothing to resume in '{}'", path), "it holds no complete restart",
                "give the output directory of a run that was stopped (run.restart_interval, run.restart_steps), or "
                "begin with maki run");
  require_known_format(there.own.back());
}

std::vector<std::uint64_t> steps_of(const std::vector<RestartInfo>& restarts) {
  std::vector<std::uint64_t> steps;
  for (const RestartInfo& info : restarts)
    if (info.format == kRestartFormat) steps.push_back(info.step);
  return steps;
}

RestartInfo newest_whole(const std::vector<RestartInfo>& own, const OpenSites& ring, const Communicator& ranks,
                         const std::function<void(const std::string&)>& say) {
  sites::Sites& sites = *ring.sites;
  if (ring.common.empty())
    throw_at_all_sites(ring, Error("the sites have no restart in common",
                                   fmt::format("here there are steps {}", fmt::join(steps_of(own), ", ")),
                                   "give the directories of the same run at all sites, or begin with maki run"));
  std::vector<std::string> damaged;
  for (const std::uint64_t step : ring.common) {
    const auto info = std::ranges::find(own, step, &RestartInfo::step);
    const std::vector<std::string> damage = gather_texts(sites, damage_here(*info, ranks));
    const auto first = std::ranges::find_if(damage, [](const std::string& text) { return !text.empty(); });
    if (first == damage.end()) {
      for (const std::string& text : damaged) say(text + ": the one before has to serve.");
      return *info;
    }
    const int site = static_cast<int>(first - damage.begin());
    const std::string where = sites.alone() ? "" : fmt::format(" at site {}", sites.name(site));
    damaged.push_back(fmt::format("The restart of step {} is damaged{} ({})", step, where, *first));
  }
  throw_at_all_sites(ring, Error("no restart is whole", fmt::format("{}", fmt::join(damaged, "; ")), kBeginAgain));
}

RestartsThere restarts_or_none(const std::string& directory, const Communicator& ranks) {
  std::string there_is;
  root_succeeds(ranks, [&] { there_is = fs::is_directory(directory) ? "a directory" : ""; });
  if (broadcast_text(ranks, there_is).empty()) return {};
  RestartsThere there = restarts_in(directory, ranks);
  if (!there.own.empty() || !there.damaged.empty()) require_restart(there, directory);
  try {
    if (there.own.empty() && !there.ended) root_succeeds(ranks, [&] { require_no_state(directory); });
  } catch (const Error& error) {
    there.lost = error;
  }
  return there;
}

bool goes_on(const RestartsThere& there, const OpenSites& ring) {
  sites::Sites& sites = *ring.sites;
  if (sites.alone()) return !ring.common.empty();
  const std::vector<std::string> runs = gather_texts(sites, there.run);
  const std::vector<std::string> steps = gather_texts(sites, fmt::format("{}", fmt::join(steps_of(there.own), ", ")));
  const auto with = std::ranges::find_if(steps, [](const std::string& list) { return !list.empty(); });
  if (with == steps.end()) return false;
  const auto first = static_cast<std::size_t>(with - steps.begin());
  const auto name = [&](std::size_t site) { return sites.name(static_cast<int>(site)); };
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i] != runs[first])
      throw_at_all_sites(
          ring,
          Error(fmt::format("site {} holds restarts of a run, and site {} nothing of that run", name(first), name(i)),
                fmt::format("of the steps {}", steps[first]),
                "give the directories of the same run at all sites, or remove its restarts to begin again"));
  if (!ring.common.empty()) return true;
  if (std::ranges::find(steps, std::string()) != steps.end()) return false;
  const std::string& here = steps[static_cast<std::size_t>(sites.me())];
  throw_at_all_sites(ring, Error("the sites have no restart in common", fmt::format("here there are steps {}", here),
                                 kBeginAgain));
}

namespace {

// A site that was killed when its last file was complete waits in vain for others that have left in good order.
void note_end(const Config& config, const ThisSite& site) {
  const std::string& directory = *config.run.output_directory;
  if (site.over_sites() && has_ended(directory) && Communicator::world().rank() == 0)
    announcer(config)(fmt::format(
        "The run in '{}' has ended: where it has at the other sites too, and is to go no further, nothing is left to be done",
        directory));
}

// Whether the run that has ended in this directory was to end where `now` does. On the first rank.
bool has_same_end(const std::string& directory, const RestartInfo& info, const Config& now, const Communicator& ranks) {
  std::string last;
  root_succeeds(ranks, [&] { last = last_configuration(directory).value_or(""); });
  last = broadcast_text(ranks, last);
  const Config::Time then = (last.empty() ? configuration_before(info) : parse_config(last, "metrics.jsonl")).time;
  return then.end_redshift == now.time.end_redshift && then.end_time == now.time.end_time;
}

// Whether the run has ended at all sites, and none has a restart. Collective over the sites. Throws Error, at all of
// them, where it has ended at some only.
bool has_ended_everywhere(const RestartsThere& there, const OpenSites& ring) {
  const std::vector<std::string> ended = gather_texts(*ring.sites, there.ended && there.own.empty() ? "ended"
                                                                   : there.own.empty()              ? ""
                                                                                                    : "restarts");
  const auto is = [&](const char* word) { return std::ranges::count(ended, std::string(word)); };
  if (is("ended") == 0 || is("restarts") > 0) return false;
  if (is("ended") == std::ssize(ended)) return true;
  throw_at_all_sites(ring, Error("the run has ended at some of the sites, and no site has a restart of it", "",
                                 "begin again with maki run and run.overwrite = true, without --resume"));
}

void say_ended(const Config& config, const std::string& directory, const std::string& instead,
               const FiledRun::Options& options) {
  if (!options.progress) return;
  announcer(config)(fmt::format(
      "The run in '{}' has come to its end: nothing is to be done. With a later end in the settings after the {}",
      directory, instead));
}

// The configuration `before` of a restart, where it leaves a choice as chosen for a run from the beginning: another site
// may have no restart, and compares with that.
Config as_chosen(const RestartInfo& info, std::vector<std::string> settings, const Config& before,
                 const Config& begun) {
  const std::string open = wan::quoted("auto");
  for (const Key& key : config_keys())
    if (key.get(before) == open && key.get(begun) != open)
      settings.push_back(fmt::format("{}={}", key.path(), key.get(begun)));
  return configuration_of(info, settings, "command line");
}

// Prepares the initial conditions of this site's slab, on its ranks, once all sites are connected.
void take_share(Prepared& run, const Config& config, sites::Sites& sites, const Communicator& ranks) {
  const bool unmade = config.run.kind == RunKind::kCosmology && config.initial.kind != InitialKind::kFile;
  at_all_sites(sites, [&] {
    if (unmade) run = prepare(config);
  });
  keep_own_slab(run, sites, ranks);
}

}  // namespace

std::unique_ptr<FiledRun> FiledRun::begin(Config config, const Options& options) {
  const ThisSite site = choose_site(config, options.site);
  const Communicator ranks = Communicator::world();
  use_device(config);
  const Admission admission = admit(config, ranks);
  Prepared prepared = prepare(config, !site.over_sites());
  if (site.over_sites()) first_slabs(prepared, site.count);
  OpenSites ring = open_sites(prepared.config, site, ranks, {}, announcer(config));
  return start(config, std::move(prepared), admission, std::move(ring), options);
}

std::unique_ptr<FiledRun> FiledRun::start(const Config& config, Prepared prepared, const Admission& admission,
                                          OpenSites ring, const Options& options) {
  const Communicator ranks = Communicator::world();
  std::unique_ptr<FiledRun> run(new FiledRun);
  run->ring_ = std::move(ring);
  if (run->ring_.sites->count() > 1) take_share(prepared, config, *run->ring_.sites, ranks);
  const RunPlace place{ranks, *run->ring_.sites};
  at_all_sites(*run->ring_.sites, [&] {
    RunFileOptions files = run_file_options(prepared, run->ring_.run, chosen_lines(config));
    options.apply(files);
    run->files_.emplace(files, provenance(to_toml(prepared.config), device_text()), prepared, place);
  });
  run->introduce(prepared, admission, ranks);
  const SimulationOptions numbers = simulation_options(prepared, admission);
  run->simulation_.emplace(*run->stream_, std::move(prepared.initial), numbers, timeline_of(prepared), *run->files_,
                           place);
  return run;
}

// Writes the first lines of the log, makes the stream, and starts watching memory.
void FiledRun::introduce(const Prepared& run, const Admission& admission, const Communicator& ranks) {
  if (ranks.size() > 1) files_->message(describe_ranks(ranks));
  for (const auto& lines : {ring_.describe(), summary(run), admission.notes})
    for (const std::string& line : lines) files_->message(line);
  pool_watch({{"mesh.", "fft."}});
  device_ = device_of(run.config);
  stream_.emplace();
}

int FiledRun::run() {
  return logged([&] { return finish(simulation_->run()); });
}

int FiledRun::finish(const RunResult& result) {
  files_->finish(result, simulation_->timers());
  files_->report();
  files_->let_go();
  return leave_sites(ring_, result);
}

namespace {

// The directory is held from before its restarts are looked at: another run there may still write them.
FiledRun::Options locked(const std::string& directory, FiledRun::Options options, const Communicator& ranks) {
  root_succeeds(ranks, [&] {
    if (fs::is_directory(directory)) options.lock = std::make_shared<DirectoryLock>(directory);
  });
  return options;
}

}  // namespace

// ---- resuming -------------------------------------------------------------------------------------------------------

std::unique_ptr<FiledRun> FiledRun::resume(const std::string& directory, const std::vector<std::string>& settings,
                                           const Options& given, const std::string& from) {
  const Communicator ranks = Communicator::world();
  const bool is_restart = restart_folder::step_of(fs::path(directory).filename().string()) >= 0;
  const fs::path parent = fs::path(directory).parent_path();
  const Options options = locked(!is_restart ? directory : parent.empty() ? "." : parent.string(), given, ranks);
  const RestartsThere there = restarts_in(directory, ranks);
  require_restart(there, directory);
  const RestartInfo& newest = there.own.back();
  Config config = configuration_of(newest, settings, from);
  const ThisSite site = choose_site(config, options.site);
  check_place(newest, site);
  if (there.ended && !site.over_sites() && has_same_end(directory, newest, config, ranks)) {
    say_ended(config, directory,
              fmt::format("directory it goes on from its last restart; maki resume {} makes its last part again.",
                          newest.path),
              options);
    return nullptr;
  }
  note_end(config, site);
  use_device(config);
  const Offer offer{kResume, there.run, steps_of(there.own)};
  OpenSites ring = open_sites(config, site, ranks, offer, announcer(config));
  return go_on(config, settings, there, std::move(ring), options);
}

std::unique_ptr<FiledRun> FiledRun::resume_or_begin(Config config, const std::vector<std::string>& settings,
                                                    const Options& given) {
  const ThisSite site = choose_site(config, given.site);
  const Communicator ranks = Communicator::world();
  use_device(config);
  const std::string directory = config.run.output_directory.value_or("output/" + config.run.name);
  const Options options = locked(directory, given, ranks);
  const RestartsThere there = restarts_or_none(directory, ranks);
  std::optional<Config> before;
  if (!there.own.empty()) {
    before = configuration_of(there.own.back(), settings, "command line");
    choose_site(*before, site.name);
    check_place(there.own.back(), site);
    note_end(*before, site);
  }
  if (there.ended && !site.over_sites() && (!before || has_same_end(directory, there.own.back(), *before, ranks))) {
    say_ended(config, directory,
              "file it goes on from its last restart; to run it again, leave out --resume, or choose another "
              "run.output_directory.",
              options);
    return nullptr;
  }
  if (there.lost && !site.over_sites()) throw *there.lost;
  const bool at_once = before && !site.over_sites();
  const Admission admission = at_once ? Admission() : admit(config, ranks);
  Prepared prepared = at_once ? Prepared() : prepare(config, !site.over_sites());
  if (site.over_sites()) first_slabs(prepared, site.count);
  const Offer offer{kRunOrResume, there.run, steps_of(there.own)};
  const Config agreed = !before   ? prepared.config
                        : at_once ? *before
                                  : as_chosen(there.own.back(), settings, *before, prepared.config);
  OpenSites ring = open_sites(agreed, site, ranks, offer, announcer(config));
  at_all_sites(*ring.sites, [&] {
    if (there.lost) throw *there.lost;
  });
  if (site.over_sites() && has_ended_everywhere(there, ring)) {
    say_ended(config, directory, "file it can go on only with a restart.", options);
    ring.sites->close();
    return nullptr;
  }
  if (goes_on(there, ring)) return go_on(*before, settings, there, std::move(ring), options);
  return start(config, std::move(prepared), admission, std::move(ring), options);
}

std::unique_ptr<FiledRun> FiledRun::go_on(const Config& config, const std::vector<std::string>& settings,
                                          const RestartsThere& there, OpenSites ring, const Options& options) {
  const Communicator ranks = Communicator::world();
  std::vector<std::string> words;
  for (const std::string& folder : there.damaged)
    words.push_back(fmt::format("'{}' is damaged (complete.toml): the one before has to serve.", folder));
  std::unique_ptr<FiledRun> run(new FiledRun);
  run->ring_ = std::move(ring);
  Ready ready;
  ready.info = newest_whole(there.own, run->ring_, ranks, [&](const std::string& text) { words.push_back(text); });
  const RunPlace place{ranks, *run->ring_.sites};
  at_all_sites(*run->ring_.sites, [&] {
    make_ready(ready, config, place);
    run->files_.emplace(files_of(ready.run, ready.info, settings, options),
                        provenance(to_toml(ready.run.config), device_text()), ready.run, place);
  });
  RunProducts& files = *run->files_;
  for (const std::string& text : words) files.message(text);
  files.message(fmt::format("Resumed from {}: step {}, {} = {:.6g}.", ready.info.path, ready.info.step,
                            ready.run.initial.header.comoving ? "a" : "t", ready.info.time));
  run->introduce(ready.run, ready.admission, ranks);
  const SimulationOptions numbers = simulation_options(ready.run, ready.admission);
  run->simulation_.emplace(*run->stream_, *ready.from, numbers, timeline_of(ready.run), files, place);
  ready.from.reset();
  for (const std::string& name : remove_restarts_after(*config.run.output_directory, ready.info.step, ranks))
    files.message(fmt::format("{} is of a later step and is removed.", name));
  return run;
}

}  // namespace maki
