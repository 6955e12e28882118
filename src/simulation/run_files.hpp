// The output directory of a run: log.txt, metrics.jsonl, numbered snapshots and restarts; progress on stdout. Rank 0
// writes log, metrics and progress; all ranks write snapshots and restarts together. Each of several sites has its own
// directory, with its log, metrics, sites_report.txt (sites_report.hpp), and its file of each snapshot,
// snapshot_003.<place in the ring>.hdf5.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/stream.hpp"
#include "src/config/quantity.hpp"
#include "src/io/restart.hpp"
#include "src/io/run_directory.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/io/snapshot_writer.hpp"
#include "src/simulation/progress.hpp"
#include "src/simulation/simulation.hpp"
#include "src/simulation/sites_report.hpp"
#include "src/simulation/step_log.hpp"
#include "src/simulation/step_parts.hpp"
#include "src/simulation/stop_request.hpp"
#include "wan/net/error.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// Exit code of `maki run` where a signal, a stop file or the time limit ended the run early and its state is in
// stopped.hdf5.
inline constexpr int kExitStopped = 3;
// Exit code of `maki run` where another site of the run is lost and the state is in restarts.
inline constexpr int kExitSiteLost = 4;

// Number of kept restarts. When a site is lost, the others write restarts of the last two long steps at once, of which
// all sites share one; they may also have to go back to an earlier one.
constexpr int restarts_to_keep(int setting, bool over_sites) {
  return over_sites ? (setting > 2 ? setting : 2) + 2 : setting;
}

struct RunFileOptions {
  std::string directory = "output";
  bool overwrite = false;
  WriteOptions snapshots = {};      // stopped.hdf5 is always complete and exact
  int metrics_interval = 1;         // steps between lines of metrics and log
  double time_limit = 0;            // seconds since `begun`; 0: none
  double restart_interval = 0;      // seconds between restarts; 0: none for this reason
  std::uint64_t restart_steps = 0;  // steps between restarts; 0: none for this reason
  int restarts_kept = 2;            // 0: no restarts, not even when the run is stopped
  // The step of the restart from which the run resumes: log and metrics continue, and lines and files of later steps
  // are replaced.
  std::optional<std::uint64_t> resumed_at = {};
  // On the first rank, of this directory, where it is held already.
  std::shared_ptr<DirectoryLock> lock = {};
  std::string run = {};                     // its name (src/io/run_directory.hpp), for log and restarts
  std::vector<std::string> settings = {};   // that the user chose (RunHead)
  std::string initial_file = {};            // initial conditions; never removed
  std::vector<std::string> site_keys = {};  // settings with the sites' key files, for restarts
  std::FILE* progress = stdout;             // nullptr: silent
  bool json_progress = false;
  bool signals = true;  // those of StopRequest stop the run; false: the caller handles signals
  // Beginning of the time that the log counts: before initial conditions are made or a restart is read.
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  TimeUnit time_unit = {};                   // of times in messages about an isolated set
  std::optional<ModelledRun> modelled = {};  // of a periodic box: for the comparison with Maki's own model in the log
  SitesRunFacts facts = {};                  // for the predictions in sites_report.txt
};

// Lines about the links to other sites (breaks and their ends, wan/net/error.hpp), collected for the log of a run.
// While an object of this class exists, lines that wan::log() is given, from any thread, go to stderr as before and are
// collected. One object at a time: a later one takes over.
class LinkLines {
 public:
  LinkLines() {
    wan::set_log_sink([this](wan::LogLevel level, const std::string& text) {
      wan::print(level, text);
      std::lock_guard lock(mutex_);
      if (lines_.size() < kMostLines) lines_.emplace_back(WallClock::now(), text);
    });
  }
  ~LinkLines() { wan::set_log_sink({}); }
  LinkLines(const LinkLines&) = delete;
  LinkLines& operator=(const LinkLines&) = delete;

  // The lines since the last call with their times. At most kMostLines are kept between two calls; further ones are
  // only printed.
  std::vector<std::pair<WallClock::time_point, std::string>> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  static constexpr std::size_t kMostLines = 1000;
  std::mutex mutex_;
  std::vector<std::pair<WallClock::time_point, std::string>> lines_;
};

class RunFiles : public RunObserver {
 public:
  // Makes the directory; files are made with the first step or output, so that a refused run leaves none. With
  // options.overwrite all files of an earlier run are removed just before the first file is made. Signals are watched
  // from here on (options.signals). Throws Error where the directory cannot be made, is in use by a run, or holds a run
  // already (unless options.overwrite). One object on each rank; all calls but message() are collective. Over several
  // sites all sites have to call output() and finish().
  RunFiles(const RunFileOptions& options, const Provenance& provenance, const RunPlace& place = {});

  void message(const std::string& text) override;
  void step(const StepMetrics& metrics, const PhaseTimers& timers) override;
  // A snapshot is written during later steps (snapshot_writer.hpp), and reported at the end of the step in which it is
  // complete; stopped.hdf5 is complete at once. A snapshot that cannot be written ends the run: Error; not one that was
  // lost with the directory.
  void output(const OutputState& state) override;
  std::string stop_reason(double next_seconds) override;
  bool wants_restart(std::uint64_t steps) override;
  bool wants_last_restart() override { return options_.restarts_kept > 0; }
  // A restart is written during later steps (restart.hpp), and reported at the end of the step in which it is
  // complete. A restart that cannot be written leads to a message, and the earlier ones stay. Waits for the previous
  // restart, and for an unfinished snapshot, so that a resumed run has all outputs before its restart.
  void restart(const std::shared_ptr<const KeptState>& kept) override;
  std::uint64_t newest_restart() override { return newest_restart_; }
  void needs_restart(std::uint64_t step) override { needed_restart_ = step; }  // as in RunObserver

  // Waits for an unfinished snapshot. Throws Error where it cannot be written.
  void settle_snapshot();

  // Writes the end of the log: the tree of timers, modelled times beside them (RunFileOptions::modelled), the use of
  // memory (since the last pool_watch()), and the end of the run. With many ranks also the distribution over ranks;
  // with several sites also sites_report.txt.
  void finish(const RunResult& result, const PhaseTimers& timers);
  // Tells of the error that ends the run, in the log too where that can still be written, and how to go on.
  void fail(const std::string& error) noexcept;
  void let_go() { options_.lock.reset(); }  // frees the directory for other runs, as the destructor does

  const std::string& directory() const { return options_.directory; }
  std::string path(const std::string& name) const;  // of a file in the directory
  const Communicator& ranks() const { return place_.ranks; }
  const RunPlace& place() const { return place_; }

 protected:
  bool wants_restart_of(std::uint64_t step) const { return restarts_kept() > 0 && !restarts_.contains(step); }
  // Tells that there is no restart of this step; the next one is due an interval later.
  void no_restart(std::uint64_t step, const std::string& problem);
  void write_snapshot_of(const OutputState& state, SnapshotToWrite set);  // begins the snapshot
  void count_output_traffic();  // adds messages between sites for an output to the report
  void settle_restart();        // waits for an unfinished restart
  // Before files are written: makes the directory and its lock file again where they were removed or renamed. Throws
  // Error, on the first rank, where the directory's name is another run's by now.
  void keep_directory();

 private:
  void take_directory_again();
  void seek_restart(const std::string& place);
  [[noreturn]] void give_up_directory(const std::string& place);
  StepLog& log();
  void begin_files();  // before any other file, as it removes the files of an earlier run; collective, at all sites
  // Removes the restarts of an earlier run, at all sites before any of them names the new run: however this is cut
  // short, sites with and without restarts are still seen to be of one run.
  void withdraw_earlier_run();
  void open_log();
  bool speaks() const { return ranks().rank() == 0; }
  int restarts_kept() const { return restarts_to_keep(options_.restarts_kept, place_.sites->count() > 1); }
  std::string of_rank_with_most(const std::string& mine) const;
  std::string memory_of_largest(bool by_family) const;
  void finish_sites();
  std::string way_on() const;  // the command that resumes the run here
  void write_report(const RunResult& result, const PhaseTimers& timers);
  RestartInfo restart_info(const RunState& state) const;
  void told(const RestartOutcome& restart);
  void told(const SnapshotOutcome& snapshot);
  void log_links();
  void event(const std::string& line);  // of metrics, and of progress as JSON
  void fail_elsewhere(const std::string& error, const std::string& text) const;

  RunFileOptions options_;
  Provenance provenance_;
  RunPlace place_;
  StopRequest stop_;
  Progress progress_;
  bool files_begun_ = false;
  std::optional<StepLog> log_;
  std::optional<LinkLines> link_lines_;      // over several sites, on rank 0
  std::optional<SitesReport> sites_report_;  // over several sites
  std::vector<std::string> first_words_;     // messages before the log exists
  SnapshotWriter snapshot_writer_;
  std::string snapshot_line_, snapshot_moment_;        // of the unfinished snapshot: its event and its time
  bool lost_directory_ = false;                        // since it was begun; on the first rank
  RestartWriter restart_writer_;                       // destroyed before the lock on the directory
  double last_restart_ = 0;                            // time of the last restart, seconds since the start
  double longest_restart_ = 0, longest_snapshot_ = 0;  // seconds that the writing of one took
  std::uint64_t last_restart_step_ = 0;
  std::set<std::uint64_t> restarts_;  // steps of restarts written, read or being written
  std::string restart_;               // path of the last restart
  std::uint64_t newest_restart_ = 0;  // its step
  std::uint64_t needed_restart_ = 0;  // the newest that all sites have
  std::size_t own_particles_ = 0;     // of this rank
  GravityCounts counts_;              // of this rank, of all steps so far
  PartSums part_sums_;
};

}  // namespace maki
