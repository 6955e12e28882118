// What ranks tell rank 0 of themselves: at the interval of metrics, and at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/gravity/gravity.hpp"
#include "src/timing/phase_timers.hpp"

namespace maki {

// One rank. Of a step, or of the whole run so far; then counts of gravity are sums over steps, where sums make sense.
struct RankRecord {
  std::uint64_t particles = 0;
  std::uint64_t memory_high_water = 0;  // bytes of the device, handed out at one time
  std::uint64_t memory_held = 0;        // bytes of the device, from the system at one time
  double seconds = 0;
  GravityCounts gravity;
  std::vector<PhaseTime> phases;
};

// Adds a step's counts that are sums: interactions, groups walked again, and what is said of local essential trees.
void add_counts(GravityCounts& total, const GravityCounts& step);

class RecordGatherer {
 public:
  explicit RecordGatherer(const Communicator& ranks);
  // The records of all ranks on rank 0, and nothing elsewhere. One small message a rank; a second where there are
  // phases that rank 0 has not heard of. Collective.
  std::vector<RankRecord> gather(const RankRecord& mine);

 private:
  Communicator ranks_;
  std::vector<std::vector<std::string>> known_;  // paths that rank 0 knows, by rank; elsewhere this rank's alone
};

// Smallest, mean and largest of a number over ranks, and the first rank that has the largest.
struct Spread {
  double min = 0, mean = 0, max = 0;
  int largest = 0;
  double imbalance() const { return mean > 0 ? max / mean : 1; }
};
Spread spread_of(const std::vector<RankRecord>& ranks, const std::function<double(const RankRecord&)>& number);

// Seconds of the phase with this path; 0 where there is none.
double phase_seconds(const RankRecord& rank, const std::string& path);
double phase_total(const RankRecord& rank, const std::string& path);

// All paths, each parent before its children, in the order of the first rank that has them.
std::vector<std::string> phase_paths(const std::vector<RankRecord>& ranks);

// Sums, or what is alike on all ranks, of the counts of gravity.
GravityCounts over_ranks(const std::vector<RankRecord>& ranks);

// Aligned text for the end of a run: the time of each phase as smallest, mean and largest over ranks; shares of the
// work and how even they are; memory by rank; what was exchanged.
std::string rank_report(const std::vector<RankRecord>& ranks, std::uint64_t steps);

}  // namespace maki
