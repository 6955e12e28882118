// The two files that tell how a run went: metrics.jsonl for programs and log.txt for people, and the lines of metrics.jsonl
// beside those of steps (metrics.hpp): what a run is, where it goes on, its outputs and its end. None of these has a member
// "step", by which lines of steps are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device/memory.hpp"
#include "src/simulation/metrics.hpp"
#include "src/simulation/simulation.hpp"

namespace maki {

// The lines of metrics.jsonl beside those of steps: what a run is, where it goes on, its outputs and its end. None has a
// member "step", by which lines of steps are known.
struct RunHead {
  std::string run;  // its name (src/io/run_directory.hpp)
  // What the user chose, "box.size = "50 Mpc/h""; of a run that goes on what changed.
  std::vector<std::string> settings = {};
  int ranks = 1;          // of this site
  std::string site = {};  // its name in a run over several
};

// This machine's name, "" where it has none.
std::string host_name();

// The first line: run, host, the moment (UTC), ranks, settings, and in "provenance" version, git hash, compiler, device and
// the resolved configuration. A run that goes on has another such line, with the step after which it does ("resumed_at").
std::string head_line(const RunHead& head, const Provenance& provenance, std::optional<std::uint64_t> resumed_at = {});

// "output": its number, -1 where the run was stopped; a and z, or t; "file"; "force_error" where it was measured.
std::string output_line(const OutputState& state, const std::string& file);

// The last line, "end": why the run stopped, "" where it came to its end; steps, the largest energy error, wall-clock
// seconds of this process; seconds of each phase since it began, as smallest, mean and largest over ranks; device memory at
// the peak of the rank with most, and the bytes of its families of arrays.
struct RunEnd {
  RunResult result;
  double elapsed = 0;
  std::vector<RankRecord> ranks;
  std::string memory;  // memory_json() of the rank with most
};
std::string end_line(const RunEnd& end);
std::string memory_json(const std::vector<PoolUse>& families);

class StepLog {
 public:
  // Makes both files in `directory` and writes the provenance into them. Throws Error where a file exists (unless
  // `overwrite`) or cannot be written. A run that was resumed at step `resumed_at` continues the existing files, the
  // metrics after the line of that step.
  StepLog(const std::string& directory, const RunHead& head, const Provenance& provenance, bool overwrite,
          std::optional<std::uint64_t> resumed_at = {});

  // Whether the step gets a line: every `interval`-th step does, and each with energies.
  static bool is_due(const StepMetrics& metrics, int interval);
  // Writes the lines of a step. `ranks`: the records of all ranks. Throws Error when the disk is full, as do the
  // others.
  void step(const StepMetrics& metrics, const std::vector<RankRecord>& ranks);
  // A line of metrics that is not a step's (head_line() and the others).
  void event(const std::string& line);
  // A sentence, with the wall-clock time of the run in front.
  void message(const std::string& text, double elapsed);
  // The times of the phases, and a table of memory (memory_table()).
  void finish(const std::string& times, const std::string& memory);

 private:
  void check(const std::ofstream& file, const std::string& path) const;

  std::string metrics_path_, log_path_;
  std::ofstream metrics_, log_;
  int lines_since_header_ = -1;
};

// The name of the run whose metrics lie in the directory, "" where they tell of none; nothing where there are no
// metrics.
std::optional<std::string> run_in(const std::string& directory);
// Whether that run has come to its end, by the last line of its metrics.
bool has_ended(const std::string& directory);

// One aligned line and the line of names above it. For many ranks there are two more columns: the imbalance of work
// (largest number of interactions over the mean), and MB that all ranks sent for local essential trees.
std::string log_columns(bool comoving, bool many_ranks = false);
std::string log_line(const StepMetrics& metrics, const std::vector<RankRecord>& ranks);

// A table of the arrays on the device at the peak of its memory use.

// Arrays by what they belong to: the name up to the dot ("tree" of "tree.moments"). Largest first.
std::vector<PoolUse> families(const std::vector<PoolUse>& arrays);

// One aligned line for each entry, "name  MB  bytes a particle", and their sum.
std::string memory_table(const std::vector<PoolUse>& arrays, std::size_t particles);

}  // namespace maki
