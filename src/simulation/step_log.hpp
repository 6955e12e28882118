// The two files that tell how a run went: metrics.jsonl for programs and log.txt for people.
#pragma once

#include <fstream>
#include <string>

#include "src/simulation/metrics.hpp"

namespace maki {

class StepLog {
 public:
  // Makes both files in `directory` and writes the provenance into them. Every `interval`-th step gets a line (and
  // every one with energies). Throws Error where a file exists (unless `overwrite`) or cannot be written.
  StepLog(const std::string& directory, const Provenance& provenance, bool overwrite, int interval);

  // Throws Error when the disk is full; so do the others.
  void step(const StepMetrics& metrics, const PhaseTimers& timers);
  // A sentence, with the wall-clock time of the run in front.
  void message(const std::string& text, double elapsed);
  // The tree of timers, and a table of memory (memory_report.hpp).
  void finish(const PhaseTimers& timers, const std::string& memory);

 private:
  void check(const std::ofstream& file, const std::string& path) const;

  std::string metrics_path_, log_path_;
  std::ofstream metrics_, log_;
  int interval_;
  int lines_since_header_ = -1;
};

// One aligned line and the line of names above it.
std::string log_columns(bool comoving);
std::string log_line(const StepMetrics& metrics);

}  // namespace maki
