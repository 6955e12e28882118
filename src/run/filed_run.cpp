#include "src/run/filed_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <utility>

#include "host/comm/communicator.hpp"
#include "host/comm/job.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "src/config/keys.hpp"
#include "src/config/parse.hpp"
#include "src/config/resolve.hpp"
#include "src/io/restart.hpp"
#include "src/io/run_directory.hpp"
#include "src/run/build.hpp"
#include "src/run/resumed_config.hpp"
#include "src/run/run_options.hpp"
#include "src/run/run_products.hpp"

namespace maki {
namespace {

namespace fs = std::filesystem;

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

// What a run resumes with; its making (make_ready()) may fail at one site alone.
struct Ready {
  RestartInfo info;
  std::optional<KeptState> from;
  Admission admission;
  Prepared run;
};

// Whether one of these keys has another value by now.
bool differ(const Config& before, const Config& now, std::initializer_list<const char*> paths) {
  return std::ranges::any_of(paths, [&](const char* path) {
    const Key& key = find_key(path);
    return key.get(before) != key.get(now);
  });
}

// Whether the potentials of the two are of different laws, so that their energies cannot be compared.
bool other_softening(const Config& before, const Config& now) {
  return differ(before, now, {"gravity.softening", "gravity.softening_kind", "gravity.max_physical_softening"});
}

// Whether forces of the long range are of another mesh or split.
bool other_mesh(const Config& before, const Config& now) {
  return differ(before, now,
                {"gravity.mesh", "gravity.r_cut", "gravity.split", "gravity.split_order", "gravity.assignment",
                 "gravity.interlacing", "gravity.gradient"});
}

void make_ready(Ready& ready, Config config, const RunPlace& place) {
  const Config before = configuration_before(ready.info);
  ready.from = read_state(ready.info, place.ranks);
  RunState& state = ready.from->state;
  const std::string note = keep_outputs(config, before, state);
  choose_again(config, before, particles_of(state));
  ready.admission = admit(config, place.ranks, state.field.total);
  ready.run = prepare_again(config, state);
  if (!note.empty()) ready.run.notes.push_back(note);
  if (state.integrator.long_kicked_to != state.integrator.time && other_mesh(before, ready.run.config))
    ready.run.notes.push_back(
        "The mesh is another one in the middle of a long step, which may shift the energy by some thousandths. Where that "
        "matters, begin a run from a snapshot or stopped.hdf5.");
  if (!other_softening(before, ready.run.config)) return;
  state.energy = {};
  state.sample.reset();
  ready.run.notes.push_back("The softening is another one: the error of the energy is that since this restart.");
}

// Tells why a site may wait in vain: it was killed when its last file was complete, and the others have left in good
// order.
void note_end(const RestartsThere& there, const Config& config, const ThisSite& site) {
  if (!site.over_sites() || !there.ended) return;
  announcer(config)(fmt::format(
      "The run in '{}' has ended: where it has at the other sites too, and is to go no further, nothing is left to be done",
      *config.run.output_directory));
}

constexpr const char* kOnlyWithARestart = "it can go on only with a restart";

void say_ended(const Config& config, const std::string& directory, const std::string& instead,
               const FiledRun::Options& options) {
  if (!options.progress) return;
  announcer(config)(fmt::format(
      "The run in '{}' has come to its end: nothing is to be done. With a later end in the settings after the {}",
      directory, instead));
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
  if (!options.over_sites) require_one_site(config);
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
  for (const auto& lines : {ring_.describe(), summary(run), admission.notes, admission.disk})
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

// The name of a directory as the names of its files begin: "/" or "/." may end a given one.
std::string without_slash(std::string directory) {
  for (const std::string end : {"/", "/."})
    if (directory.size() > end.size() && directory.ends_with(end))
      return without_slash(directory.substr(0, directory.size() - end.size()));
  return directory;
}

// The options with a lock on the directory, taken before its restarts are read: another run may still write there.
FiledRun::Options locked(const std::string& directory, FiledRun::Options options, const Communicator& ranks) {
  root_succeeds(ranks, [&] {
    if (fs::is_directory(directory)) options.lock = std::make_shared<DirectoryLock>(directory);
  });
  return options;
}

}  // namespace

std::string output_directory(const Config& config) {
  return without_slash(config.run.output_directory.value_or("output/" + config.run.name));
}

// ---- resuming -------------------------------------------------------------------------------------------------------

std::unique_ptr<FiledRun> FiledRun::resume(const std::string& path, const std::vector<std::string>& settings,
                                           const Options& given, const std::string& from) {
  const Communicator ranks = Communicator::world();
  const std::string directory = without_slash(path);
  const bool is_restart = restart_folder::step_of(fs::path(directory).filename().string()) >= 0;
  const fs::path parent = fs::path(directory).parent_path();
  const Options options = locked(!is_restart ? directory : parent.empty() ? "." : parent.string(), given, ranks);
  const RestartsThere there = restarts_in(directory, ranks);
  const bool done = there.own.empty() && there.damaged.empty() && there.ended && options.site.empty();
  if (done) {
    if (!there.last_configuration.empty())
      require_way_on(there, parse_config(there.last_configuration, "metrics.jsonl", settings, from), directory, ranks);
    if (options.progress)
      say_now(
          fmt::format("The run in '{}' has come to its end, and has no restart from which it could go on.", directory));
    return nullptr;
  }
  require_restart(there, directory);
  const RestartInfo& newest = there.own.back();
  Config config = configuration_of(newest, settings, from);
  if (!options.over_sites) require_one_site(config);
  const ThisSite site = choose_site(config, options.site);
  check_place(newest, site);
  if (there.ended && !site.over_sites() && has_same_end(there, config)) {
    say_ended(config, directory,
              there.own.size() == 1 ? "directory it goes on from its last restart."
                                    : fmt::format("directory it goes on from its last restart; maki resume {} makes "
                                                  "what follows it again.",
                                                  there.own.front().path),
              options);
    return nullptr;
  }
  note_end(there, config, site);
  use_device(config);
  const Offer offer{kResume, there.run, steps_of(there.own)};
  OpenSites ring = open_sites(config, site, ranks, offer, announcer(config));
  if (site.over_sites() && has_ended_everywhere(there, config, ring)) {
    say_ended(config, directory, "directory the sites go on from their last restart.", options);
    ring.sites->close();
    return nullptr;
  }
  return go_on(settings, from, there, std::move(ring), options);
}

std::unique_ptr<FiledRun> FiledRun::resume_or_begin(Config config, const std::vector<std::string>& settings,
                                                    const Options& given) {
  const ThisSite site = choose_site(config, given.site);
  const Communicator ranks = Communicator::world();
  use_device(config);
  const std::string directory = output_directory(config);
  const Options options = locked(directory, given, ranks);
  const RestartsThere there = restarts_or_none(directory, ranks);
  std::optional<Config> before;
  if (!there.own.empty()) {
    before = configuration_of(there.own.back(), settings, "command line");
    choose_site(*before, site.name);
    check_place(there.own.back(), site);
    note_end(there, *before, site);
  }
  std::vector<std::string> words;
  if (before) {
    check_same_run(config, *before, directory);
    words = left_out(config, *before);
  }
  if (!site.over_sites()) require_way_on(there, config, directory, ranks);
  if (there.ended && !site.over_sites() && (!before || has_same_end(there, *before))) {
    if (options.progress) std::ranges::for_each(words, announcer(config));
    say_ended(config, directory,
              fmt::format("file {}; to run it again, leave out --resume, or choose another run.output_directory.",
                          before ? "it goes on from its last restart" : kOnlyWithARestart),
              options);
    return nullptr;
  }
  if (there.lost && !site.over_sites()) throw *there.lost;
  Admission admission;
  std::optional<Prepared> prepared;
  const auto make = [&] {
    admission = admit(config, ranks);
    prepared = prepare(config, !site.over_sites());
    if (site.over_sites()) first_slabs(*prepared, site.count);
  };
  if (!before) make();  // what fails here does so before other sites are waited for
  const Offer offer{kRunOrResume, there.run, steps_of(there.own)};
  OpenSites ring = open_sites(before ? *before : prepared->config, site, ranks, offer, announcer(config));
  at_all_sites(*ring.sites, [&] {
    if (there.lost) throw *there.lost;
  });
  if (site.over_sites() && has_ended_everywhere(there, before.value_or(config), ring)) {
    at_all_sites(*ring.sites, [&] { require_way_on(there, config, directory, ranks); });
    say_ended(config, directory, fmt::format("file {}.", kOnlyWithARestart), options);
    ring.sites->close();
    return nullptr;
  }
  if (goes_on(there, ring)) return go_on(settings, "command line", there, std::move(ring), options, words);
  at_all_sites(*ring.sites, [&] {
    if (!prepared) make();
  });
  require_one_configuration(prepared->config, ring);
  return start(config, std::move(*prepared), admission, std::move(ring), options);
}

std::unique_ptr<FiledRun> FiledRun::go_on(const std::vector<std::string>& settings, const std::string& from,
                                          const RestartsThere& there, OpenSites ring, const Options& options,
                                          std::vector<std::string> words) {
  const Communicator ranks = Communicator::world();
  for (const std::string& folder : there.damaged)
    words.push_back(fmt::format("'{}' is damaged (complete.toml): the one before has to serve.", folder));
  std::unique_ptr<FiledRun> run(new FiledRun);
  run->ring_ = std::move(ring);
  Ready ready;
  ready.info = newest_whole(there.own, run->ring_, ranks, [&](const std::string& text) { words.push_back(text); });
  const RunPlace place{ranks, *run->ring_.sites};
  Config config;
  at_all_sites(*run->ring_.sites, [&] {
    const auto newest = std::ranges::find(there.own, run->ring_.common.front(), &RestartInfo::step);
    config = configuration_of(*newest, settings, from);
    choose_site(config, options.site);
  });
  require_one_configuration(config, run->ring_);
  at_all_sites(*run->ring_.sites, [&] {
    make_ready(ready, config, place);
    RunFileOptions files = run_file_options(ready.run, ready.info.run, settings);
    options.apply(files);
    files.overwrite = true;  // of files written after this restart; log and metrics continue
    files.resumed_at = ready.info.step;
    run->files_.emplace(files, provenance(to_toml(ready.run.config), device_text()), ready.run, place);
  });
  RunProducts& files = *run->files_;
  for (const std::string& text : words) files.message(text);
  if (config.output.film > 0 && !has_same_end(there, config))
    files.message("The pictures of the film are spread to the new end: those before this restart are not.");
  const std::string when = ready.run.initial.header.comoving
                               ? fmt::format("a = {:.6g}", ready.info.time)
                               : "t = " + time_text(ready.info.time, time_unit(ready.run.config, ready.run.units));
  files.message(fmt::format("Resumed from {}: step {}, {}.", ready.info.path, ready.info.step, when));
  run->introduce(ready.run, ready.admission, ranks);
  const SimulationOptions numbers = simulation_options(ready.run, ready.admission);
  run->simulation_.emplace(*run->stream_, *ready.from, numbers, timeline_of(ready.run), files, place);
  ready.from.reset();
  for (const std::string& name : remove_restarts_after(*config.run.output_directory, ready.info.step, ranks))
    files.message(fmt::format("{} is of a later step and is removed.", name));
  return run;
}

}  // namespace maki
