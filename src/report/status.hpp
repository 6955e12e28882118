// A run by its files: its state in words, following it while it runs, and its report, one HTML page.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "src/config/config.hpp"
#include "src/report/run_records.hpp"

namespace maki::report {

// The resolved configuration of the run's last process. None where it cannot be read; then `problem` says why.
std::optional<Config> configuration_of(const RunRecords& records, std::string& problem);

// "z = 3.21" or "t = 1.5 Gyr".
std::string moment(const RunRecords& records, double time);

// "A periodic box of 50 Mpc/h with 262144 particles, from z = 49 to z = 0, preset ..."
std::string what_was_run(const RunRecords& records, const Config& config);

enum class State { kEnded, kStopped, kSiteLost, kFailed, kOpen };
State state_of(const RunRecords& records);
// "Came to its end at z = 0, step 735, in 39 s."
std::string state_text(const RunRecords& records, const std::string& directory);

// Signs of a run from outside, beside its lines.
struct Signs {
  double silent = 0;  // seconds since the last line was written
  bool gone = false;  // it ran on this machine, and no process holds its directory any more
  double now = 0;     // seconds since 1970, for the expected end
};

// Reads the lines of a run as they are written.
class Follower {
 public:
  // Throws Error where the directory does not exist. The run need not have begun.
  explicit Follower(std::string directory);

  // Reads new lines; the first call reads the beginning and the last megabyte. A file that was restarted or truncated
  // (maki resume) is read again. Returns whether there was a new line. Throws Error where the directory has gone.
  bool read_on();
  const RunRecords& records() const { return reader_.records(); }
  bool begun() const { return !records().beginnings.empty(); }
  Signs signs() const;

 private:
  void start();
  void listen(bool heard, std::time_t written);

  std::string directory_, path_;
  RecordReader reader_;
  std::uint64_t read_ = 0;  // bytes
  std::uint64_t inode_ = 0;
  std::optional<std::chrono::steady_clock::time_point> looked_;  // for lines
  double silent_ = 0;                                            // s
};

enum class Life {
  kNotBegun,  // no line yet
  kUnderWay,
  kSilent,  // no line for far longer than steps take: it writes a large file, hangs, or is gone
  kDead,    // silent, and surely gone
  kEnded,   // also stopped, without a site, or by an error
};
Life life_of(const RunRecords& records, const Signs& signs);

// A screen of lines: time, steps, expected end, seconds by phase, energy, memory, ranks, sites, and its state.
std::vector<std::string> status_lines(const RunRecords& records, const Signs& signs);

// The run's state in one line: status_lines() without phases.
std::string status_line(const RunRecords& records, const Signs& signs);

// The state of the run in a sentence with `directory` in it.
std::string life_text(const RunRecords& records, const Signs& signs, const std::string& directory);

// ---- the report ----------------------------------------------------------------------------------------------------

struct Page {
  std::string html;
  std::size_t picture_bytes = 0;  // of the html
};

// The page of the run in a directory, whether it has ended, was stopped, goes on or was resumed. The page lists missing
// and damaged files. Throws Error where the directory holds no run (metrics.jsonl).
Page report_page(const std::string& directory);

// Writes report.html in the directory, replacing an older one. Returns "DIRECTORY/report.html (712 kB)". Throws Error
// as report_page() does, and where the file cannot be written.
std::string write_report(const std::string& directory);

}  // namespace maki::report
