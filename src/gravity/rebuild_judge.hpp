// When kept lists are to be made anew: by their measured error, and by what they and the domains cost beyond new ones.
#pragma once

#include "host/comm/communicator.hpp"

namespace maki {

// What ranks tell each other after each evaluation; counts as doubles.
struct StepSums {
  double interactions = 0, members = 0, groups = 0, rewalked = 0;
  double difference = 0, reference = 0;  // of the probes (SampleError)
  double batched = 0;                    // ranks whose lists were not kept
  double outgrown = 0;                   // groups too near to what other ranks have sent undivided
  double largest = 0;                    // interactions of one rank
  double ranks = 1;

  // Over all ranks, the same bits on each. Collective.
  static StepSums over_ranks(const Communicator& ranks, StepSums mine);

  // Of other ranks, too.
  void add(const StepSums& other);

  double particles() const { return members > 1 ? members : 1; }
  double mean_list() const { return interactions / particles(); }
  double imbalance() const { return interactions > 0 ? largest * ranks / interactions : 1; }
  double probe_error() const;  // rms relative error on the probes; 0 without any
};

// Given the same sums on all ranks, it decides the same on all of them.
class RebuildJudge {
 public:
  explicit RebuildJudge(double tolerance) : tolerance_(tolerance) {}

  // The lists are new; `balanced`: the domains were cut by what particles have cost.
  void begin(const StepSums& sums, bool balanced);
  // Kept lists were used: whether the next step is to make new ones. That step's error is extrapolated from the last
  // two, so that the limit is kept and not found out about.
  // `ahead`: the error of so many steps later counts.
  bool wants_rebuild(const StepSums& sums, int ahead = 1);

 private:
  double tolerance_;           // of the kept lists' error over the fresh ones'
  double fresh_pairs_ = 0;     // interactions of the lists as built
  double fresh_error_ = 0;     // of the probes, just after the rebuild
  double previous_error_ = 0;  // of the probes, one step ago
  double attainable_ = 1;      // imbalance of the ranks that cutting anew may reach
  double excess_ = 0;          // work that kept lists and domains have cost, in interactions a particle
};

}  // namespace maki
