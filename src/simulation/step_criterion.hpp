// The length of the next step. Times and steps are in t of the timeline: ln a in comoving runs, else time.
#pragma once

#include "src/cosmology/cosmology.hpp"

namespace maki {

struct StepOptions {
  double eta = 0.025;                 // accuracy: dt = eta sqrt(a^3 eps / |grad phi|)
  double max_dlna = 0.02;             // comoving: longest short step (kStretch may lengthen it), d ln a
  double long_dlna = 0.02;            // comoving: longest long step of several short ones, d ln a
  double long_displacement = 0.25;    // largest rms displacement in one long step, in r_cut
  double max_step = 0;                // longest step, t; 0: no limit
  double fixed_step = 0;              // length of all short steps (shortened evenly to hit outputs), t; 0: adaptive
  double softening = 0;               // comoving Plummer length, length units
  double max_physical_softening = 0;  // largest a * softening, length units; 0: no cap
  double r_cut = 0;                   // comoving, length units; 0 without a mesh
  int max_substeps = 64;              // short steps in a long one, at most
  // True: a run at one site chooses each step by the measures at the end of the last step. False, and always over
  // several sites: by those at the end of the step before it, which all sites know by then.
  bool by_newest = false;
  bool growth_exact = true;  // comoving: kick and drift factors for forces and momenta that grow as in linear theory
};

// Measures by which steps are chosen, in units of the run.
struct StepMeasure {
  double acceleration = 0;          // largest |grad phi|, velocity^2 / length (comoving)
  double max_momentum = 0;          // largest |p|, velocity
  double rms_momentum = 0;          // rms |p|, velocity
  double rms_acceleration = 0;      // rms |grad phi|, velocity^2 / length (comoving)
  double typical_acceleration = 0;  // geometric mean of |grad phi|, in the same units
};

// The contribution of one site to a StepMeasure over all sites.
struct MeasurePart {
  double acceleration = 0;  // as in StepMeasure
  double max_momentum = 0;  // as in StepMeasure
  // The site's part of the mean squares of |p| and |grad phi|; -1 where no long step has ended.
  double mean_square_momentum = 0;
  double mean_square_acceleration = 0;
  double mean_logarithm = 0;  // likewise, of SquareUnits::logarithm with |grad phi| in mass / side^2
};

// Comoving softening at scale factor a, with the physical cap.
double softening_at(const StepOptions& options, double a);

// Length of a short step that begins at t: the criterion and all limits. Infinite where nothing limits it.
double short_step(const StepOptions& options, const Timeline& timeline, double t, const StepMeasure& measure);

// Length of a long step that begins at t: a whole number of short steps, as many as long_dlna and the rms displacement
// allow, at least one. Equal to `short_step` where there is no mesh (r_cut = 0).
double long_step(const StepOptions& options, const Timeline& timeline, double t, const StepMeasure& measure,
                 double short_step);

// Length of the equal steps that make up `remaining`: their number is the integer nearest to remaining / wanted, such
// that no step exceeds `wanted` by more than the fraction `stretch`. With stretch = 0 the fewest steps not longer than
// `wanted`.
double divide_evenly(double remaining, double wanted, double stretch);

// Fraction by which a short step may exceed the criterion where that saves a step: otherwise a slightly smaller
// criterion within a long step would halve its last step. Fixed steps are never stretched.
inline constexpr double kStretch = 0.08;

}  // namespace maki
