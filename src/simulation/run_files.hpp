// The output directory of a run: log.txt, metrics.jsonl, and numbered snapshots; progress on stdout. Of many ranks, the
// first alone writes and speaks; snapshots are written by all together. Over sites each has a directory of its own, in
// which are its log, its metrics, sites_trace.csv and sites_report.txt (sites_report.hpp), and its file of each
// snapshot: snapshot_003.<place in the ring>.hdf5 of a set that lies over the sites.
#pragma once

#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "src/io/directory_lock.hpp"
#include "src/simulation/progress.hpp"
#include "src/simulation/run_context.hpp"
#include "src/simulation/simulation.hpp"
#include "src/simulation/sites_report.hpp"
#include "src/simulation/step_log.hpp"
#include "src/simulation/stop_request.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// What `maki run` exits with when a signal, a stop file or the time limit ended the run early and its state is in
// stopped.hdf5.
inline constexpr int kExitStopped = 3;
// The same where another site of a run does not answer any more, and the state is in restarts.
inline constexpr int kExitSiteLost = 4;

// How many restarts stay. Sites that lose each other have one step of the last two in common, and where a site is lost
// the others write two at once, and may have to go back to one from before that.
constexpr int restarts_to_keep(int setting, bool over_sites) {
  return over_sites ? (setting > 2 ? setting : 2) + 2 : setting;
}

struct RunFileOptions {
  std::string directory = "output";
  bool overwrite = false;
  int compression = 0;              // of snapshots, 0 to 9
  int metrics_interval = 1;         // steps between lines of metrics and log
  double time_limit = 0;            // seconds; 0: none
  double restart_interval = 0;      // seconds between restarts; 0: none for this reason
  std::uint64_t restart_steps = 0;  // steps between restarts; 0: none for this reason
  int restarts_kept = 2;            // 0: none at all, not even where the run is stopped
  // The run goes on from a restart of this step: log and metrics are added to, and what the run had written after it is
  // written anew.
  std::optional<std::uint64_t> resumed_at;
  std::string run;                     // its name (src/io/run_directory.hpp), for log and restarts
  std::string initial_file;            // that it begins with; never removed
  std::vector<std::string> site_keys;  // settings with the sites' key files, for restarts
  std::FILE* progress = stdout;        // nullptr: silent
};

class RunFiles : public RunObserver {
 public:
  // Makes the directory; files follow with the first step or output, so that a run that is refused leaves none. Before
  // the first of them, and with options.overwrite, all that an earlier run has left there is removed.
  // Signals are watched from here on. Throws Error where the directory cannot be made, is in use by a run, or holds
  // one already (unless options.overwrite). Over ranks one on each, and all calls are collective but message(). Over
  // sites output() and finish() are calls of all sites too.
  RunFiles(const RunFileOptions& options, const Provenance& provenance, const RunPlace& place = {});

  void message(const std::string& text) override;
  void step(const StepMetrics& metrics, const PhaseTimers& timers, double steps_left) override;
  void sites_record(const SitesRecord& told, const SitesTraffic& traffic) override;
  void output(const OutputState& state) override;
  std::string stop_reason(double long_step_seconds) override;
  bool wants_restart(std::uint64_t steps) override;
  // Where it cannot be written, this is said, and the former ones stay.
  void restart(const KeptState& kept) override;

  // For the predictions of the last report. Without sites nothing.
  void describe(const SitesRunFacts& facts);

  // Last words: the tree of timers, where the memory went (since the last pool_watch()), and where the run ended. Of
  // many ranks: how all that was shared by them. Over sites also how they shared it, into sites_report.txt.
  void finish(const RunResult& result, const PhaseTimers& timers);

  std::string path(const std::string& name) const;
  const std::vector<std::string>& snapshots() const { return snapshots_; }
  const Communicator& ranks() const { return ranks_; }
  // For files that lie over several sites; null where there is one.
  sites::Sites* sites() const { return sites_->alone() ? nullptr : sites_.get(); }

 protected:
  void count_output_traffic();  // what came and went for an output, so far

 private:
  StepLog& log();
  void open_log();  // before any other file: with the first of them goes what an earlier run has left
  bool speaks() const { return ranks_.rank() == 0; }
  std::string memory_of_largest(bool by_family) const;
  void report_sites(StepMetrics& metrics, const PhaseTimers& timers);
  void finish_sites();
  void write_report(const RunResult& result, const PhaseTimers& timers);

  RunFileOptions options_;
  Provenance provenance_;
  Communicator ranks_;
  std::shared_ptr<sites::Sites> sites_;
  RecordGatherer gatherer_;
  std::optional<DirectoryLock> lock_;  // of the one that speaks
  StopRequest stop_;
  Progress progress_;
  std::optional<StepLog> log_;
  std::optional<SitesReport> sites_report_;
  std::optional<std::pair<SitesRecord, SitesTraffic>> told_;  // of the step that is about to be told of
  std::vector<std::string> first_words_;                      // from before there was a log
  std::vector<std::string> snapshots_;
  double last_restart_ = 0;  // seconds, when
  std::uint64_t last_restart_step_ = 0;
  std::set<std::uint64_t> restarts_;  // steps of those that were written, or read
  std::string restart_;               // the last one's path
  std::size_t particles_ = 0;         // of all ranks
  std::size_t own_particles_ = 0;     // of this rank
  GravityCounts counts_;              // of this rank, of all steps so far
};

}  // namespace maki
