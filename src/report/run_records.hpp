// Reader of a run's metrics.jsonl (src/simulation/metrics.hpp, step_log.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/config/quantity.hpp"
#include "src/io/snapshot.hpp"

namespace maki::report {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// The first line, or one where the run was resumed.
struct Beginning {
  std::string run, site, host, began;  // `began`: UTC
  std::optional<std::uint64_t> resumed_at;
  int ranks = 1;
  std::vector<std::string> settings;
  Provenance provenance;
  TimeUnit time_unit;  // in which times of an isolated run are shown
};

struct MinMeanMax {
  double min = kUnknown, mean = kUnknown, max = kUnknown;
};

// Traffic of one phase between sites: seconds and number of waits, bytes.
struct SiteTraffic {
  double waited = 0, waits = 0, sent = 0, received = 0;
};

// The slab of one site in a step, in x, sides of the box.
struct SiteSlab {
  double begin = 0, end = 0;
};

// Numbers of one step; kUnknown where the line has none.
struct Step {
  std::uint64_t step = 0;
  double time = kUnknown;  // scale factor, or time
  double dt = kUnknown, dlna = kUnknown;
  bool long_step_end = false, rebuilt = false;
  double particles = 0, mean_list = 0;
  double probe_error = 0, fresh_error = 0;
  double kinetic = kUnknown, potential = kUnknown;
  double energy_error = kUnknown, momentum_drift = kUnknown, force_residual = kUnknown;
  double memory = kUnknown;  // bytes, of the rank with most
  double seconds = 0, elapsed = 0, steps_left = kUnknown;
  std::map<std::string, double> phases;     // seconds, by path
  double interaction_imbalance = kUnknown;  // largest over mean, as the next two
  double evaluate_imbalance = kUnknown, domain_imbalance = kUnknown;
  double site_waited = kUnknown;                    // seconds, for messages of other sites
  std::map<std::string, SiteTraffic> site_traffic;  // by phase
  std::vector<std::pair<std::string, SiteSlab>> sites;

  bool comoving() const { return dlna == dlna; }
  double redshift() const { return 1 / time - 1; }
};

struct Output {
  int index = 0;           // -1: the run was stopped
  double time = kUnknown;  // scale factor, or time
  std::optional<ForceError> force_error;
};

using PhaseSeconds = std::vector<std::pair<std::string, MinMeanMax>>;  // by path, each parent before its children

struct End {
  std::string stopped_by;  // "": the run came to its end
  bool site_lost = false;
  double time = kUnknown;  // where it ended: scale factor, or time
  double steps = 0, rebuilds = 0, long_steps = 0, elapsed = 0;
  PhaseSeconds phases;                                 // over ranks
  double memory = kUnknown;                            // bytes, of the rank with most
  std::vector<std::pair<std::string, double>> arrays;  // bytes by family, largest first
};

struct RunRecords {
  std::vector<Beginning> beginnings;  // the first, and those where the run was resumed
  std::vector<Step> steps;
  std::vector<Output> outputs;
  std::optional<End> end;                     // none: the run is under way, ended by an error, or was killed
  std::string error;                          // that ended its last process; "": none that it could write
  PhaseSeconds earlier_phases;                // sums over the processes before the last
  bool earlier_by_steps = false;              // one of these has no end in the files: its recorded steps count
  std::map<std::string, double> step_phases;  // seconds by path, of the last process's recorded steps
  std::vector<std::string> problems;          // sentences on lines that cannot be read
  std::uint64_t every = 1;                    // one of so many lines of steps has been read: a sample of a long run

  TimeUnit time_unit() const { return beginnings.empty() ? TimeUnit{} : beginnings.back().time_unit; }
  bool comoving() const { return !steps.empty() && steps.front().comoving(); }
  PhaseSeconds phases() const;  // sums over all processes
  // The time that the run has reached, or its end: the last step's line may be some steps older. Needs lines of steps.
  double reached() const { return end && end->time == end->time ? end->time : steps.back().time; }
  std::uint64_t last_step() const { return end ? static_cast<std::uint64_t>(end->steps) : steps.back().step; }
};

// Bytes of the device on the rank with most, in the last process; kUnknown where no line has them.
double memory_at_the_peak(const RunRecords& records);

// Takes lines one after another, as they are written.
class RecordReader {
 public:
  // Of each `every` lines of steps takes one: at first the first, later one at a varying place. Its seconds of phases
  // count `every` times.
  explicit RecordReader(std::uint64_t every = 1) { records_.every = every; }
  void line(const std::string& text);
  void take_last();  // reads the last line of a step, where it was left out
  const RunRecords& records() const { return records_; }
  void keep_last(std::size_t steps);  // for following a long run: drops earlier steps

 private:
  bool is_left_out(const std::string& line);
  void read(const std::string& text);
  RunRecords records_;
  std::string left_out_;  // the last line of a step, where it was left out
  std::uint64_t lines_ = 0;
  std::array<std::uint64_t, 2> steps_{};  // lines of steps so far, without and with energies
};

// All lines; where there are more than `most` of steps, a sample of these. Throws Error where there is no metrics.jsonl
// or no run in it; damaged lines become problems.
RunRecords read_records(const std::string& directory, std::uint64_t most = 100'000);

}  // namespace maki::report
