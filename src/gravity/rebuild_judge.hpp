// The decision to rebuild: by the measured error of kept lists, and by their cost and the domains' imbalance.
#pragma once

#include "host/comm/communicator.hpp"

namespace maki {

// Sums over ranks after each evaluation; counts as doubles.
struct StepSums {
  double interactions = 0, members = 0, groups = 0, rewalked = 0;
  double difference = 0, fresh_difference = 0, reference = 0;  // of the probes by kept and fresh lists (SampleError)
  double batched = 0;                                          // ranks whose lists were not kept
  double outgrown = 0;  // groups too near to undivided cells of other ranks' trees
  double largest = 0;   // most interactions of one rank
  double ranks = 1;

  // Sums over all ranks, the same bits on each. Collective.
  static StepSums over_ranks(const Communicator& ranks, StepSums mine);

  // Adds the sums of other ranks.
  void add(const StepSums& other);

  double particles() const { return members > 1 ? members : 1; }
  double mean_list() const { return interactions / particles(); }
  double imbalance() const { return interactions > 0 ? largest * ranks / interactions : 1; }
  // rms relative errors on the probes, 0 without any: of the lists as they are, and of lists made now.
  double probe_error() const { return relative(difference); }
  double fresh_error() const { return relative(fresh_difference); }

 private:
  double relative(double difference_squared) const;
};

// The error that kept lists are measured by: that of fresh lists, or where these are nearly exact (lists of an early box hold
// no cells) a lesser one than that of the mesh.
double reference_error(double fresh_error, double theta);

// Decisions are alike on all ranks if the sums given are.
class RebuildJudge {
 public:
  explicit RebuildJudge(double tolerance) : tolerance_(tolerance) {}

  // Takes the sums of an evaluation with new lists. `balanced`: the domains were cut by measured cost.
  void begin(const StepSums& sums, bool balanced);
  // Takes the sums of an evaluation with kept lists of opening angle `theta`; returns whether to rebuild. The error `ahead`
  // steps later is extrapolated from the last two, so that the rebuild comes before the limit is passed.
  bool wants_rebuild(const StepSums& sums, double theta, int ahead = 1);

 private:
  double tolerance_;           // largest ratio of the error of kept lists to that of fresh ones
  double fresh_pairs_ = 0;     // interactions of the lists as built
  double previous_error_ = 0;  // probe error one step ago
  double attainable_ = 1;      // imbalance of the ranks that new domains may reach
  double excess_ = 0;          // extra cost of kept lists and domains so far, in interactions a particle
};

}  // namespace maki
