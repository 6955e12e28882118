// The metrics of each step, one JSON object a line, and the records of all ranks from which they are made. The other
// lines of the file: step_log.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/gravity/gravity.hpp"
#include "src/io/snapshot.hpp"
#include "src/simulation/totals.hpp"
#include "src/timing/phase_timers.hpp"
#include "wan/sites/ring.hpp"

namespace maki {

// Record of one site, from its sums (SiteMeasures).
struct SiteRecord {
  double force_seconds = 0;        // of its slowest rank: lists walked and evaluated (t_calc of SUSHI's eq. 1)
  std::uint64_t interactions = 0;  // pairs, of all its ranks
  std::uint64_t particles = 0;     // of all its ranks
  double begin = 0, end = 0;       // its slab in x at the step of the line, sides
};

struct SitesRecord {
  std::uint64_t known_step = 0;   // the step that `sites` describes: one or two before that of the line
  std::vector<SiteRecord> sites;  // in the order of the ring; empty while nothing is known
  // Times of this site in this step; others are in StepMetrics and PhaseTimers.
  double transform_seconds = 0;  // Fourier transforms of the whole mesh at every site; 0 if unknown
  double coding_seconds = 0;     // coding and decoding of mesh masses in messages
};

using SitesTraffic = std::array<sites::Traffic, sites::kPhases>;

struct StepMetrics {
  std::uint64_t step = 0;  // 0: the forces before the first step
  bool comoving = true;
  double time = 0;                     // scale factor, or time
  double dt = 0;                       // physical time, length/velocity units
  double dlna = 0;                     // 0 in isolated runs
  bool long_step_end = false;          // the long-range force was evaluated too
  int substep = 0;                     // 1, 2, ... within the long step
  std::size_t particles = 0;           // of all ranks
  std::size_t own_particles = 0;       // of this rank
  double max_acceleration = 0;         // |grad phi|, velocity^2 / length
  double rms_acceleration = 0;         // at the last end of a long step
  double rms_momentum = 0;             // likewise
  GravityCounts gravity;               // of this rank
  std::optional<EnergyReport> energy;  // of synchronised states, if computed
  double momentum_drift = 0;           // |sum m p - that at the start| / sum m |p|; with energy
  double force_residual = 0;           // |sum m a| / sum m |a|; with energy
  std::size_t memory_high_water = 0;   // bytes of device memory, of this rank
  double seconds = 0;                  // wall-clock time of the step
  double elapsed = 0;                  // since the start of the run
  double steps_left = 0;               // to the end if all are as long as this one
  SitesRecord of_sites;                // over several sites
  SitesTraffic traffic{};              // messages between sites since those of the step before, or of an output
  std::string sites;                   // over several sites: SitesReport::json() of the step
};

// The record of one rank, for a step or for the whole run so far (then the counts of add_counts() are sums over steps).
// Rank 0 gathers them at the interval of metrics and at the end of a run.
struct RankRecord {
  std::uint64_t particles = 0;
  std::uint64_t memory_high_water = 0;  // bytes of device memory in use by arrays, at most
  std::uint64_t memory_held = 0;        // bytes of device memory taken from the system, at most
  GravityCounts gravity;
  std::vector<PhaseTime> phases;
};

// Adds the counts of a step that can be summed: interactions, groups walked again, and counts of local essential trees.
void add_counts(GravityCounts& total, const GravityCounts& step);

// The records of all ranks on rank 0, an empty vector elsewhere: one small message from each rank. Collective.
std::vector<RankRecord> gather_records(const Communicator& ranks, const RankRecord& mine);

// Smallest, mean and largest of a number over ranks, and the first rank that has the largest.
struct Spread {
  double min = 0, mean = 0, max = 0;
  int largest = 0;
  double imbalance() const { return mean > 0 ? max / mean : 1; }
};
Spread spread_of(const std::vector<RankRecord>& ranks, const std::function<double(const RankRecord&)>& number);

// The spread of a phase's seconds or total_seconds over ranks; 0 on ranks without the phase.
Spread phase_spread(const std::vector<RankRecord>& ranks, const std::string& path, double PhaseTime::*number);

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

// The record of one rank for one step.
RankRecord record_of(const StepMetrics& metrics, const PhaseTimers& timers);

// One line without its end. Phases are seconds of this step by path, "tree/walk"; numbers that are not finite are null.
// Over many ranks counts are sums, phases are means, the memory is that of the rank with most, and an object "ranks"
// has smallest, mean and largest of each. Over several sites time, energies and particles are those of the whole
// simulation, all other numbers those of this site, and an object "sites" describes the other sites, messages and
// waiting times.
std::string to_json(const StepMetrics& metrics, const std::vector<RankRecord>& ranks);

}  // namespace maki
