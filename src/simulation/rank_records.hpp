// Records of all ranks, gathered on rank 0 at the interval of metrics and at the end of a run.
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

// The record of one rank, for a step or for the whole run so far; in the latter the counts of add_counts() are sums
// over steps.
struct RankRecord {
  std::uint64_t particles = 0;
  std::uint64_t memory_high_water = 0;  // bytes of device memory in use by arrays, at most
  std::uint64_t memory_held = 0;        // bytes of device memory taken from the system, at most
  double seconds = 0;
  GravityCounts gravity;
  std::vector<PhaseTime> phases;
};

// Adds the counts of a step that can be summed: interactions, groups walked again, and counts of local essential trees.
void add_counts(GravityCounts& total, const GravityCounts& step);

class RecordGatherer {
 public:
  explicit RecordGatherer(const Communicator& ranks);
  // The records of all ranks on rank 0, an empty vector elsewhere. One small message from each rank, and a second one
  // where rank 0 does not know its phases yet. Collective.
  std::vector<RankRecord> gather(const RankRecord& mine);

 private:
  Communicator ranks_;
  std::vector<std::vector<std::string>> known_;  // by rank, paths that rank 0 knows; on other ranks only their own
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

// The counts of gravity over ranks: sums, the longest list, and counts that are the same on all ranks.
GravityCounts over_ranks(const std::vector<RankRecord>& ranks);

// Aligned text for the end of a run: smallest, mean and largest time of each phase over ranks; shares of the work and
// their imbalance; memory by rank; traffic between ranks. For one rank the tree of its timers.
std::string run_report(const PhaseTimers& timers, const std::vector<RankRecord>& ranks, std::uint64_t steps);

}  // namespace maki
