// Seconds of steps in the parts of which Maki's own model consists (src/model/maki.hpp).
#pragma once

#include <optional>
#include <string>

#include "host/comm/communicator.hpp"
#include "src/model/maki.hpp"
#include "src/simulation/metrics.hpp"

namespace maki {

// Of one step and rank, without the computation of energies.
struct StepParts {
  double evaluate = 0;  // forces by lists
  double mesh = 0;      // with what is waited for there; 0: no mesh in this step
  double waited = 0;    // for trees of other ranks
  double rest = 0;      // not below zero, where tree and mesh overlap
};
StepParts parts_of(const StepMetrics& metrics, const PhaseTimers& timers);

// What the model has to know of a run to be compared with it.
struct ModelledRun {
  model::MakiRun run;
  std::optional<model::Machine> machine;  // with [maki], on rank 0; none: the log says how to make one
};

// Sums of the parts of a run's steps, of one rank, but for two: the first evaluation (step 0), and the first new lists after it.
// Both take memory from the system that later ones find (bench/NOTES.md, "Maki's own model"), once a run, and a model of
// steps has nothing like it.
class PartSums {
 public:
  // `traffic` of this step, as the gateway has it; null at one site.
  void step(const StepMetrics& metrics, const PhaseTimers& timers, const SitesTraffic* traffic);
  // Means over ranks beside the model, or how to come by one; meant for rank 0. Collective over the site's ranks.
  std::string report(const Communicator& ranks, const ModelledRun& of) const;

 private:
  model::MeasuredSteps sums_, waits_of_sites_;  // the latter: only its waiting times
  double first_made_ = 0;                       // seconds of the step with the first new lists; 0: not there yet
};

}  // namespace maki
