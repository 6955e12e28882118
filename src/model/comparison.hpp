// Measured times of a run's steps beside those of Maki's own model (maki.hpp), by phase.
#pragma once

#include <string>
#include <vector>

#include "src/model/maki.hpp"

namespace maki::model {

// Sums over steps, of one rank or a mean over ranks. Seconds but for the first five.
struct MeasuredSteps {
  double made_steps = 0, kept_steps = 0, long_steps = 0;     // with new lists; with kept ones; of both, with the mesh
  double interactions = 0, particles = 0;                    // of lists; particles that they act on
  double evaluate = 0;                                       // forces by lists
  double made = 0, kept = 0;                                 // all else but the mesh, by kind of step
  double mesh = 0;                                           // with coding and transposes, without waiting times
  double waited_made = 0, waited_kept = 0, waited_mesh = 0;  // for other ranks and sites
  double steps() const { return made_steps + kept_steps; }
};

// One phase: means over the steps that have it.
struct ComparedPhase {
  const char* name;
  const char* in;  // in which steps
  double steps = 0;
  double measured = 0, modelled = 0;                            // seconds
  double off() const { return steps * (measured - modelled); }  // seconds of all steps
};

// Phases of which either side has some time. Throws Error as maki_step().
std::vector<ComparedPhase> compare(const MeasuredSteps& measured, const MakiRun& run, const Machine& machine);

// A table of them, the phase that is furthest off over all steps, and interactions a particle beside those of the model;
// a single line where there was no step. Throws Error as maki_step().
std::string comparison_text(const MeasuredSteps& measured, const MakiRun& run, const Machine& machine);

}  // namespace maki::model
