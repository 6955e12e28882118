// Maki's own model: seconds of its three kinds of steps (with new lists, with kept lists, and with the mesh too), over
// ranks and sites. It has the form of SUSHI's (published.hpp: forces, mesh, lines within and between sites) with Maki's
// phases: rebuilds, messages that travel while the own tree is evaluated (docs/design.md, "Many ranks" and "Many
// sites"; waits: the table of bench/NOTES.md, "Several sites"), and transforms of the whole mesh at every site, on all
// its ranks.
//
// The time of new lists grows faster than a rank's particles: on a CPU the radix sort of keys and the following gather
// of particles take 37, 58, 111 and 161 ns a particle at 32^3 to 256^3, and the rest hardly grows (bench/NOTES.md,
// "Maki's own model"). Both access their arrays at random, and caches and address translation hold a smaller share of
// these with each doubling. Hence made + doubling log2(n / near) seconds a particle beyond `near` particles.
#pragma once

#include <string>
#include <vector>

#include "src/model/machine.hpp"

namespace maki::model {

// Bytes of one rank at its peak, from the estimate of a run (src/run/estimate.hpp); the models have no estimate of
// their own.
struct RankMemory {
  double device = 0, host = 0;
  double shared = 0;  // where device and host are one memory: at most their sum, as their peaks are at different times
};

struct MakiRun {
  double particles = 0;  // N
  double cells = 0;      // M, of the whole mesh; 0: none
  double cut = 3;        // r_cut in mesh cells
  double ranks = 1;      // of all sites
  int sites = 1;
  double rebuild_every = 9;  // steps, where error decides: 87 of 770 (bench/NOTES.md, "The same bits ...")
  double long_every = 7.5;   // steps: at z = 0 two of 15 use the mesh (the same)
  RankMemory memory = {};    // zero: not known
};

// Seconds of one step of each kind, of the slowest site.
struct MakiStep {
  double evaluate = 0;                                       // forces by lists, in every step
  double made = 0, kept = 0;                                 // the rest of a step with new lists, with kept ones
  double mesh = 0;                                           // in a long step: the mesh
  double code = 0;                                           // coding of its messages to other sites
  double transpose = 0;                                      // its bytes between ranks
  double waited_made = 0, waited_kept = 0, waited_mesh = 0;  // for messages, of each kind
  double rebuild_step() const { return evaluate + made + waited_made; }  // without the mesh, as the next one
  double kept_step() const { return evaluate + kept + waited_kept; }
  double long_part() const { return mesh + code + transpose + waited_mesh; }  // additional time of a step with the mesh
  double mean(const MakiRun& run) const;
  const char* largest(const MakiRun& run) const;  // the largest part of the mean, in words
};

// Interactions a particle: the calibration's, scaled with the volume within r_cut of a group's box.
double maki_interactions(const MakiRun& run, const MakiConstants& constants);
// Bytes in a step: trees from a site to its neighbours; mesh, through each direction of a link.
double maki_tree_bytes(const MakiRun& run);
double maki_mesh_bytes(const MakiRun& run);

// Throws Error where the machine has no [maki], or no network where there are several ranks.
MakiStep maki_step(const MakiRun& run, const Machine& machine);

// Measured sums over a run's steps, of one rank or a mean over ranks, to compare with the model. In seconds, except the
// first five.
struct MeasuredSteps {
  double made_steps = 0, kept_steps = 0, long_steps = 0;     // with new lists; with kept ones; of both, with the mesh
  double interactions = 0, particles = 0;                    // of lists; target particles
  double evaluate = 0;                                       // forces by lists
  double made = 0, kept = 0;                                 // all except the mesh, by kind of step
  double mesh = 0;                                           // with coding and transposes, without waiting times
  double waited_made = 0, waited_kept = 0, waited_mesh = 0;  // for other ranks and sites
  double steps() const { return made_steps + kept_steps; }
};

// One phase: means over the steps with it.
struct ComparedPhase {
  const char* name;
  const char* in;  // in which steps
  double steps = 0;
  double measured = 0, modelled = 0;                            // seconds
  double off() const { return steps * (measured - modelled); }  // seconds of all steps
};

// Phases with a time in the measurement or the model. Throws Error as maki_step().
std::vector<ComparedPhase> compare(const MeasuredSteps& measured, const MakiRun& run, const Machine& machine);

// A table of the phases, the phase with the largest difference over all steps, and interactions a particle beside the
// model's; a single line where there was no step. Throws Error as maki_step().
std::string comparison_text(const MeasuredSteps& measured, const MakiRun& run, const Machine& machine);

}  // namespace maki::model
