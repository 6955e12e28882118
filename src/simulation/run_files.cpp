#include "src/simulation/run_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "host/comm/communicator.hpp"
#include "host/comm/job.hpp"
#include "kernels/device/memory.hpp"
#include "kernels/error.hpp"
#include "src/io/json.hpp"
#include "src/io/run_directory.hpp"
#include "src/io/safe_file.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/simulation/step_log.hpp"

namespace maki {

namespace {

constexpr double kProgressInterval = 5;  // seconds between lines where there is no terminal
// Share of the time of steps in which compressed numbers of a snapshot are passed to HDF5.
constexpr double kOutputShare = 0.05;

ProgressForm form_of(const RunFileOptions& options) {
  if (options.json_progress) return ProgressForm::kJson;
  return under_mpi() ? ProgressForm::kLines : ProgressForm::kScreen;
}

// Throws Error where overwriting would remove the initial file (or set of files, by its base name).
void spare_initial_file(const RunFileOptions& options) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path file = fs::weakly_canonical(options.initial_file, ignored);  // it may be a link
  const std::string name = file.filename().string();
  if (!is_of_a_run(name) && !is_of_a_run(name + ".hdf5")) return;
  if (!fs::equivalent(file.has_parent_path() ? file.parent_path() : ".", options.directory, ignored)) return;
  throw Error(fmt::format("'{}' would be removed", options.initial_file),
              "the run begins with it, and overwrites the run in whose directory it lies",
              "choose another run.output_directory, or move the file");
}

std::string prepared_directory(RunFileOptions& options) {
  ensure_output_directory(options.directory);
  if (!options.lock) options.lock = std::make_shared<DirectoryLock>(options.directory);
  if (options.resumed_at) return options.directory;
  const std::vector<std::string> old = files_of_a_run(options.directory);
  if (!old.empty() && !options.overwrite)
    throw Error("the output directory " + options.directory + " holds a run already",
                fmt::format("{} is in it", old.front()),
                "choose another one (run.output_directory), or set run.overwrite = true");
  if (!old.empty()) spare_initial_file(options);
  return options.directory;
}

// Of the first rank, whose errors all ranks throw; "" on others.
std::string directory_of_run(RunFileOptions& options, const Communicator& ranks) {
  std::string directory;
  root_succeeds(ranks, [&] { directory = prepared_directory(options); });
  return directory;
}

std::string moment(const SnapshotHeader& header, const RunFileOptions& options) {
  return header.comoving ? fmt::format("z = {:.4g}", header.redshift)
                         : "t = " + time_text(header.time, options.time_unit);
}

}  // namespace

RunFiles::RunFiles(const RunFileOptions& options, const Provenance& provenance, const RunPlace& place)
    : options_(options), provenance_(provenance), place_(place),
      stop_(directory_of_run(options_, ranks()), speaks() ? options.time_limit : 0, options.begun, options.signals),
      progress_(speaks() ? options.progress : nullptr, kProgressInterval, form_of(options), options.time_unit),
      snapshot_writer_(place), restart_writer_(place.ranks), last_restart_step_(options.resumed_at.value_or(0)) {
  if (options.resumed_at) {
    restarts_.insert(*options.resumed_at);
    newest_restart_ = *options.resumed_at;
    restart_ = path(restart_folder::name_of(*options.resumed_at));
  }
  if (!place_.sites->alone()) {
    sites_report_.emplace(*place_.sites, options.facts);
    if (speaks()) link_lines_.emplace();
  }
  if (place_.sites->ring()) place_.sites->ring()->leave_when(stop_.made());
}

StepLog& RunFiles::log() {
  open_log();
  return *log_;
}

void RunFiles::keep_directory() {
  if (options_.lock && !options_.lock->holds()) take_directory_again();
}

void RunFiles::take_directory_again() {
  const std::string& directory = options_.directory;
  const std::string place = options_.lock->place();
  std::error_code ignored;
  const bool removed = !std::filesystem::is_directory(directory, ignored);
  try {
    ensure_output_directory(directory);
  } catch (const Error&) {  // a restart or an output will say so
    return;
  }
  seek_restart(place);
  try {
    options_.lock->take_again();
  } catch (const Error&) {
    give_up_directory(place);
  }
  if (run_in(directory).name.value_or(options_.run) != options_.run) give_up_directory(place);
  lost_directory_ = true;
  if (log_) log_->reopen();
  message(!place.empty() ? fmt::format("'{0}' was renamed to '{1}' while the run wrote to it. The run goes on in a new "
                                       "'{0}'; its files so far are in '{1}'.",
                                       directory, place)
          : removed      ? fmt::format("'{}' was removed while the run wrote to it. It is made again, for what the run "
                                            "writes from here on.",
                                       directory)
                         : fmt::format("The lock file of '{}' was gone, and is made again.", directory));
}

// The last restart is in the directory with its new name, or is gone; the next one is due.
void RunFiles::seek_restart(const std::string& place) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (restart_.empty() || (place.empty() && fs::exists(restart_, ignored))) return;
  restart_ = place.empty() ? "" : (fs::path(place) / fs::path(restart_).filename()).string();
  last_restart_ = -options_.restart_interval;
  last_restart_step_ = 0;
}

void RunFiles::give_up_directory(const std::string& place) {
  options_.lock.reset();
  stop_.forget_file();
  throw Error(fmt::format("'{}' is the directory of another run by now", options_.directory),
              fmt::format("that of this run was {} while the run wrote to it",
                          place.empty() ? "removed, or its lock file was," : "renamed to '" + place + "'"),
              "leave a directory its name as long as a run writes to it");
}

void RunFiles::begin_files() {
  keep_directory();
  if (std::exchange(files_begun_, true)) return;
  if (!options_.resumed_at) withdraw_earlier_run();
  open_log();
}

void RunFiles::withdraw_earlier_run() {
  root_succeeds(ranks(), [&] {
    note_overwriting(options_.directory);
    remove_restarts(options_.directory);
  });
  place_.sites->meet();
}

void RunFiles::open_log() {
  if (log_ || !speaks()) return;
  if (options_.resumed_at)
    remove_begun_files(options_.directory);
  else
    remove_files_of_a_run(options_.directory);
  const sites::Sites& sites = *place_.sites;
  const RunHead head{options_.run, options_.settings, ranks().size(), sites.name(sites.me()), options_.time_unit};
  log_.emplace(options_.directory, head, provenance_, options_.overwrite, options_.resumed_at);
  for (const std::string& text : first_words_) log_->message(text, stop_.elapsed());
}

void RunFiles::message(const std::string& text) {
  if (!speaks()) return;
  if (log_)
    log_->message(text, stop_.elapsed());
  else
    first_words_.push_back(text);
  progress_.message(text);
}

void RunFiles::log_links() {
  if (!link_lines_ || !log_) return;
  for (const auto& [when, text] : link_lines_->take())
    log_->message("Links: " + text, stop_.elapsed() - seconds_since(when));
}

void RunFiles::step(const StepMetrics& of_step, const PhaseTimers& timers) {
  begin_files();
  StepMetrics metrics = of_step;
  part_sums_.step(metrics, timers);
  if (sites_report_) {
    sites_report_->step(own_record(ranks(), metrics, timers), metrics.of_sites, metrics.traffic);
    metrics.sites = sites_report_->json();
  }
  log_links();
  own_particles_ = metrics.own_particles;
  add_counts(counts_, metrics.gravity);
  if (StepLog::is_due(metrics, options_.metrics_interval)) {
    const std::vector<RankRecord> records = gather_records(ranks(), record_of(metrics, timers));
    if (speaks()) log().step(metrics, records);
  }
  if (const std::optional<RestartOutcome> restart = restart_writer_.look()) told(*restart);
  if (const std::optional<SnapshotOutcome> snapshot = snapshot_writer_.look(kOutputShare * metrics.seconds))
    told(*snapshot);
  if (log_) {
    if (log_->waits()) log_->reopen();
    for (const std::string& news : log_->news()) message(news);
  }
  progress_.step(metrics, stop_.elapsed());
}

void RunFiles::finish_sites() {
  const std::string text = sites_report_->finish();
  if (!speaks()) return;
  try {
    SafeFile file(path("sites_report.txt"), true);
    file.write(text);
    file.commit();
  } catch (const Error& error) {  // the log has the same tables
    message(fmt::format("There is no sites_report.txt: {}", error.what()));
  }
  log().finish(text, "");
  progress_.message(text);
}

void RunFiles::count_output_traffic() {
  if (sites_report_) sites_report_->output(place_.sites->take_traffic());
}

void RunFiles::output(const OutputState& state) { write_snapshot_of(state, {state.copy()}); }

void RunFiles::write_snapshot_of(const OutputState& state, SnapshotToWrite set) {
  settle_snapshot();
  begin_files();
  const bool stopped = state.index < 0;
  if (stopped) settle_restart();  // the disk may have no room for both
  const std::string name = stopped ? "stopped.hdf5" : fmt::format("snapshot_{:03}.hdf5", state.index);
  WriteOptions write = stopped ? WriteOptions{.deflate = options_.snapshots.deflate} : options_.snapshots;
  write.overwrite = options_.overwrite || options_.resumed_at || stopped;
  Provenance provenance = provenance_;
  provenance.force_error = state.force_error;
  lost_directory_ = false;
  const std::vector<std::string> files = snapshot_writer_.begin(path(name), std::move(set), provenance, write);
  snapshot_line_ = output_line(state, std::filesystem::path(files.front()).filename().string());
  snapshot_moment_ = moment(state.header, options_);
  if (stopped) settle_snapshot();
  count_output_traffic();
}

void RunFiles::settle_snapshot() {
  if (!snapshot_writer_.busy()) return;
  told(snapshot_writer_.wait());
}

void RunFiles::told(const SnapshotOutcome& snapshot) {
  if (!snapshot.problem.empty()) {
    keep_directory();  // it may have been lost since the step began
    if (largest_of(ranks(), std::uint64_t{lost_directory_ ? 1u : 0u}) == 0) throw Error(snapshot.problem);
    return message(fmt::format("{}: {}. The run goes on without it.", snapshot_moment_, snapshot.problem));
  }
  longest_snapshot_ = std::max(longest_snapshot_, snapshot.seconds);
  event(snapshot_line_);
  message(fmt::format("{}: wrote {}", snapshot_moment_, snapshot.files.front()));
}

// The time limit leaves room for the restart and for stopped.hdf5 (as many bytes), which a stopped run writes, and for
// what is being written. What has not been timed in this process counts with a slow disk's speed.
std::string RunFiles::stop_reason(double next_seconds) {
  constexpr double kSlow = 1e8;  // bytes/s of a rank
  const double bytes = (ParticleRows::kBytes + ParticleRows::kLongBytes) * static_cast<double>(own_particles_);
  const double longest = std::max(longest_restart_, longest_snapshot_);
  const double snapshot = longest > 0 ? longest : bytes / kSlow;
  const double restart = options_.restarts_kept == 0 ? 0 : longest_restart_ > 0 ? longest_restart_ : bytes / kSlow;
  const double before = std::max(snapshot_writer_.seconds_left(), snapshot_writer_.busy() ? snapshot : 0) +
                        (restart_writer_.busy() ? restart : 0);
  return stop_.reason(next_seconds + before + restart + snapshot);
}

bool RunFiles::wants_restart(std::uint64_t steps) {
  if (options_.restarts_kept == 0) return false;
  const bool by_steps = options_.restart_steps > 0 && steps >= last_restart_step_ + options_.restart_steps;
  // If the disk is slower than the interval, the next restart waits for the last one, and the run goes on. For a
  // snapshot it waits only one interval more; then the run waits for both, since large compressed snapshots may take as
  // long as from one to the next.
  const double interval = options_.restart_interval;
  const double waiting = snapshot_writer_.busy() ? interval : 0;
  const bool by_time = interval > 0 && !restart_writer_.busy() && stop_.elapsed() >= last_restart_ + interval + waiting;
  return by_steps || by_time;
}

void RunFiles::restart(const std::shared_ptr<const KeptState>& kept) {
  const std::uint64_t step = kept->state.result.steps;
  if (!wants_restart_of(step)) return;
  if (step == 0) return message("The run had not made a step: begin again with maki run.");
  settle_snapshot();
  settle_restart();
  keep_directory();
  if (options_.lock) options_.lock->touch();
  if (log_) log_->reopen();
  last_restart_step_ = step;
  restarts_.insert(step);
  const RestartInfo info = restart_info(kept->state);
  try {
    restart_writer_.begin(options_.directory, info, to_numbers(kept->state), {kept->particles, kept->escapers, kept},
                          restarts_kept(), needed_restart_);
  } catch (const Error& error) {
    no_restart(step, error.what());
  }
}

void RunFiles::no_restart(std::uint64_t step, const std::string& problem) {
  last_restart_step_ = step;
  told({step, "", problem, 0});
}

RestartInfo RunFiles::restart_info(const RunState& state) const {
  RestartInfo info;
  info.run = options_.run;
  info.step = state.result.steps;
  info.time = state.file_time;
  info.site = place_.sites->me();
  info.sites = place_.sites->count();
  info.site_keys = options_.site_keys;
  info.provenance = provenance_;
  return info;
}

void RunFiles::settle_restart() {
  if (restart_writer_.busy()) told(restart_writer_.wait());
}

void RunFiles::told(const RestartOutcome& restart) {
  last_restart_ = stop_.elapsed();
  if (restart.problem.empty()) {
    restart_ = restart.path;
    newest_restart_ = restart.step;
    longest_restart_ = std::max(longest_restart_, restart.seconds);
    event(JsonObject().add("restart", restart.step).text());
    return message(fmt::format("Step {}: wrote {} in {:.1f} s", restart.step, restart.path, restart.seconds));
  }
  restarts_.erase(restart.step);
  message(fmt::format("Step {}: there is no restart of it: {}. {}", restart.step, restart.problem,
                      restart_.empty() ? "The run has none." : "The last one is " + restart_ + "."));
}

std::string RunFiles::of_rank_with_most(const std::string& mine) const {
  const std::vector<std::uint64_t> most = gathered(ranks(), std::uint64_t{pool_report().high_water});
  return broadcast_text(ranks(), mine, static_cast<int>(std::ranges::max_element(most) - most.begin()));
}

// The arrays of the rank with most memory.
std::string RunFiles::memory_of_largest(bool by_family) const {
  const std::vector<PoolUse> arrays = pool_report().peaks.front().arrays;
  const std::string text = memory_table(by_family ? families(arrays) : arrays, own_particles_);
  if (ranks().size() == 1) return text;
  return of_rank_with_most(fmt::format("rank {} held most:\n{}", ranks().rank(), text));
}

void RunFiles::write_report(const RunResult& result, const PhaseTimers& timers) {
  const std::string arrays = memory_of_largest(false);
  const std::string model = options_.modelled ? '\n' + part_sums_.report(ranks(), *options_.modelled) : "";
  const PoolReport pool = pool_report();
  const std::vector<RankRecord> records =
      gather_records(ranks(), {own_particles_, pool.high_water, pool.most_reserved, counts_, timers.phases()});
  const std::string memory = of_rank_with_most(memory_json(families(pool.peaks.front().arrays)));
  if (!speaks()) return;
  event(end_line(result, stop_.elapsed(), records, memory));
  log().finish(run_report(timers, records, result.steps) + model, arrays);
}

void RunFiles::event(const std::string& line) {
  if (!speaks()) return;
  log().event(line);
  progress_.event(line);
}

void RunFiles::finish(const RunResult& result, const PhaseTimers& timers) {
  settle_snapshot();
  settle_restart();
  keep_directory();
  log_links();
  write_report(result, timers);
  const std::string memory = memory_of_largest(true);
  // The rank with most memory in use, and the rank with most from the system.
  const PoolReport pool = pool_report();
  std::array<std::uint64_t, 2> most = {pool.high_water, pool.most_reserved};
  ranks().max(most);
  const std::uint64_t sum = sum_of(ranks(), std::uint64_t{pool.high_water});
  const std::uint64_t particles = sum_of(ranks(), std::uint64_t{own_particles_});  // of this site; 0 without a step
  progress_.finish();
  if (!result.stopped_by.empty())
    message(fmt::format("Stopped by {}. {}", result.stopped_by,
                        result.site_lost   ? "To continue, at all sites, here: " + way_on()
                        : restart_.empty() ? fmt::format("To continue: the same configuration with initial.kind=file "
                                                         "initial.file={} and another run.output_directory.",
                                                         path("stopped.hdf5"))
                                           : "To continue: " + way_on()));
  std::string text =
      fmt::format("{} steps, {} of them with a new tree, {:.1f} s.", result.steps, result.rebuilds, stop_.elapsed());
  if (result.energy) text += fmt::format(" Largest energy error {:.2e}.", result.worst_energy_error);
  text += fmt::format(" Device memory: {:.1f} MB at the peak{}, {:.0f} bytes a particle ({:.1f} MB held).",
                      1e-6 * static_cast<double>(most[0]), most[0] < sum ? " of the rank with most" : "",
                      static_cast<double>(sum) / static_cast<double>(particles > 0 ? particles : result.particles),
                      1e-6 * static_cast<double>(most[1]));
  message(text);
  progress_.message(memory);
  if (sites_report_ && !result.site_lost) finish_sites();
  if (log_) log_->settle();
}

std::string RunFiles::way_on() const {
  const sites::Sites& sites = *place_.sites;
  const std::string there = std::filesystem::path(restart_).parent_path().string();
  return resume_command(there.empty() ? options_.directory : there, sites.alone() ? "" : sites.name(sites.me()));
}

void RunFiles::fail(const std::string& error) noexcept {
  if (speaks() && !log_) return;
  try {
    try {
      if (ranks().size() == 1) settle_restart();
    } catch (const std::exception&) {  // of the log; the restart is known
    }
    const std::string to_continue = !restart_.empty() ? "To continue: " + way_on()
                                    : restart_writer_.busy()
                                        ? "If the restart under way is whole, this continues: " + way_on()
                                        : "There is no restart.";
    const std::string text = fmt::format("The run ends by an error: {}. {}", error, to_continue);
    if (!speaks()) return fail_elsewhere(error, text);
    progress_.message("The run ends by an error. " + to_continue);
    log_links();
    event(error_line(error));
    log_->message(text, stop_.elapsed());
  } catch (const std::exception&) {  // the error is a full disk, or no memory
  }
}

// The first rank may be waiting for this one. It has written the error already where all ranks fail alike.
void RunFiles::fail_elsewhere(const std::string& error, const std::string& text) const {
  wait_to_speak();
  const RunThere there = run_in(options_.directory);
  if (there.name != options_.run || there.failed) return;
  const std::string rank = fmt::format("rank {}: ", ranks().rank());
  add_from_elsewhere(options_.directory, error_line(rank + error), message_line(rank + text, stop_.elapsed()));
}

std::string RunFiles::path(const std::string& name) const {
  return (std::filesystem::path(options_.directory) / name).string();
}

}  // namespace maki
