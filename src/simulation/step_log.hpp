// The two records of a run: log.txt for people, and metrics.jsonl for programs. In metrics.jsonl only lines of steps
// (metrics.hpp) have the member "step". The other lines describe the run, its resumption, its outputs and its end;
// "restart" gives the step of a complete restart, and "error" the error that ended the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device/memory.hpp"
#include "src/config/quantity.hpp"
#include "src/io/safe_file.hpp"
#include "src/simulation/metrics.hpp"
#include "src/simulation/simulation.hpp"

namespace maki {

// Facts of a run for its first line.
struct RunHead {
  std::string run;  // its name (src/io/run_directory.hpp)
  // The user's settings, such as "box.size = "50 Mpc/h""; for a resumed run the changed ones.
  std::vector<std::string> settings = {};
  int ranks = 1;            // of this site
  std::string site = {};    // its name in a run over several
  TimeUnit time_unit = {};  // in which times of an isolated run are shown
};

std::string metrics_path(const std::string& directory);

// The first line: run, host, time (UTC), ranks, "time_unit" of an isolated run that has units (its name, and its length
// in the run's unit of time), settings, and in "provenance" version, git hash, compiler, device and the resolved
// configuration. A resumed run has another such line, with the step of its restart ("resumed_at").
std::string head_line(const RunHead& head, const Provenance& provenance, std::optional<std::uint64_t> resumed_at = {});

// "output": its number, -1 where the run was stopped; a and z, or t; "file"; "force_error" where it was measured.
std::string output_line(const OutputState& state, const std::string& file);

// The last line. "end": the reason why the run stopped, "" where it is done. Also steps, the largest energy error,
// wall-clock seconds of this process, smallest, mean and largest seconds of each phase over ranks since its start, the
// peak of device memory on the rank with most, and the bytes of its families of arrays (`memory`, its memory_json()).
std::string end_line(const RunResult& result, double elapsed, const std::vector<RankRecord>& ranks,
                     const std::string& memory);
std::string memory_json(const std::vector<PoolUse>& families);

// "error": the error that ended the run.
std::string error_line(const std::string& error);
// A sentence in log.txt, with the wall-clock time of the run in front.
std::string message_line(const std::string& text, double elapsed);

class StepLog {
 public:
  // Makes both files in `directory` and writes the provenance into them. Throws Error where a file exists (unless
  // `overwrite`) or cannot be written. A run that was resumed at step `resumed_at` continues the existing files, the
  // metrics after the line of that step. Later lines for which the disk has no room wait in memory (LineFile).
  StepLog(const std::string& directory, const RunHead& head, const Provenance& provenance, bool overwrite,
          std::optional<std::uint64_t> resumed_at = {});

  // Whether the step gets a line: every `interval`-th step, and each step with energies.
  static bool is_due(const StepMetrics& metrics, int interval);
  // Writes the lines of a step. `ranks`: the records of all ranks. step(), event(), message() and finish() throw Error
  // where more lines wait than memory should hold.
  void step(const StepMetrics& metrics, const std::vector<RankRecord>& ranks);
  // A line of metrics other than a step's (head_line() and so on).
  void event(const std::string& line);
  void message(const std::string& text, double elapsed);
  // The times of the phases, and a table of memory (memory_table()).
  void finish(const std::string& times, const std::string& memory);
  // Lines for the user about files whose lines have begun to wait, or are all written, since the last call.
  std::vector<std::string> news();
  // Continues in the files that have their names now (LineFile::reopen()); new files begin with the provenance.
  void reopen();
  bool waits() const { return metrics_.waits() || log_.waits(); }
  // Throws Error as LineFile::settle().
  void settle();

 private:
  LineFile metrics_, log_;
  std::string metrics_head_, log_head_;
  int lines_since_header_ = -1;
};

// What the metrics in a directory tell of the run there.
struct RunThere {
  std::optional<std::string> name;            // none where their first line is missing
  std::optional<std::string> configuration;   // of its last process, resolved; none where it is unknown
  std::optional<std::uint64_t> last_restart;  // step of the last one that is complete; none where there was none
  std::string last_output;                    // file name of the last one
  bool overwritten = false;                   // another run has begun to replace it (note_overwriting())
  bool ended = false;                         // whether it has come to its end, by their last line
  bool failed = false;                        // whether that line is an error
};
RunThere run_in(const std::string& directory);
// Notes in the metrics of an earlier run, if there are any, that a new run begins in its place. If the new run is
// killed while it removes the earlier one's files, the missing restarts then do not count as lost. Throws Error where
// the note cannot be written.
void note_overwriting(const std::string& directory);
// Adds to both files from a rank that does not write them; the writing rank may be waiting for this one. Throws
// Error where a file cannot be written.
void add_from_elsewhere(const std::string& directory, const std::string& event, const std::string& message_line);

// One aligned line, and the line of column names above it. For many ranks there are two more columns: the imbalance of
// work (largest number of interactions over the mean), and MB that all ranks sent for local essential trees.
std::string log_columns(bool comoving, bool many_ranks = false);
std::string log_line(const StepMetrics& metrics, const std::vector<RankRecord>& ranks);

// Arrays by family, the name up to the dot ("tree" of "tree.moments"). Largest first.
std::vector<PoolUse> families(const std::vector<PoolUse>& arrays);

// One aligned line for each entry, "name  MB  bytes a particle", and their sum.
std::string memory_table(const std::vector<PoolUse>& arrays, std::size_t particles);

}  // namespace maki
