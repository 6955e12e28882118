// The two files that tell how a run went: metrics.jsonl for programs and log.txt for people.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "src/simulation/metrics.hpp"
#include "src/simulation/run_lines.hpp"

namespace maki {

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
  // A line of metrics that is not a step's (run_lines.hpp).
  void event(const std::string& line);
  // A sentence, with the wall-clock time of the run in front.
  void message(const std::string& text, double elapsed);
  // The times of the phases, and a table of memory (memory_report.hpp).
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

}  // namespace maki
