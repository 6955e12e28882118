// Seconds of steps, in the parts of Maki's own model (src/model/maki.hpp).
#pragma once

#include <optional>
#include <string>

#include "host/comm/communicator.hpp"
#include "src/model/maki.hpp"
#include "src/simulation/metrics.hpp"

namespace maki {

// Seconds of one step on one rank, without the computation of energies.
struct StepParts {
  double evaluate = 0;  // forces by lists
  double mesh = 0;      // with its waiting time; 0: no mesh in this step
  double waited = 0;    // for trees of other ranks
  double rest = 0;      // not below zero, as tree and mesh may overlap
};
StepParts parts_of(const StepMetrics& metrics, const PhaseTimers& timers);

// Input of the model for the comparison with a run.
struct ModelledRun {
  model::MakiRun run;
  std::optional<model::Machine> machine;  // with [maki], on rank 0; none: the log says how to make one
};

// Sums of the parts of a run's steps on one rank, without the first evaluation (step 0) and the first new lists after
// it. Only these two allocate memory from the system (bench/NOTES.md, "Maki's own model"), which the model does not
// describe.
class PartSums {
 public:
  void step(const StepMetrics& metrics, const PhaseTimers& timers);
  // Means over ranks beside the model, or how to get a model; meant for rank 0. Collective over the site's ranks.
  std::string report(const Communicator& ranks, const ModelledRun& of) const;

 private:
  model::MeasuredSteps sums_, waits_of_sites_;  // the latter: only its waiting times
  double first_made_ = 0;                       // seconds of the step with the first new lists; 0: none yet
};

}  // namespace maki
