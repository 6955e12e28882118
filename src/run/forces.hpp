// Forces on the particles of a set, by the methods of a run or by exact sums in double precision.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "src/gravity/gravity.hpp"
#include "src/gravity/reference/exact_sums.hpp"
#include "src/run/setup.hpp"

namespace maki {

enum class ForceMethod {
  kRun,     // tree, or tree and mesh, or direct, as configured
  kDirect,  // isolated: double-precision sum over all pairs
  kEwald,   // periodic: double-precision sum over all images
};

// Forces by target, in the run's units: acceleration = -grad Phi in velocity^2 / length, Phi in velocity^2 with laplace
// Phi = 4 pi G (rho - mean rho), comoving and without a factor of a.
using SetForces = ReferenceForces;

// Exact sums, whatever the method, where particles are too far away for the box (run.aside > 0). Targets are indices
// into run.initial, ascending. The device must have been chosen (use_device). Throws Error where the method does not
// suit the set.
SetForces forces_of(const Prepared& run, ForceMethod method, const std::vector<std::size_t>& targets);

// Forces at arbitrary points, in length units: anywhere in a periodic box, which repeats itself; also outside of an
// isolated set. `run` is of one rank. Except for exact sums, points are rounded as particles are, to 2^-32 of a box
// that holds them all. Throws Error as forces_of(), and where a coordinate is not finite, or the points of an isolated
// set lie so far apart that the softening is too small for such a box.
SetForces forces_at(Prepared run, ForceMethod method, const std::vector<std::array<double, 3>>& points);

// Makes `gravity` open cells as a run would with these particles: by theta_early where forces in a periodic box nearly
// cancel, by estimated error in isolated sets (gravity.opening). Computes all forces to decide this.
void open_as_a_run(const Stream& stream, const Prepared& run, Gravity& gravity, Particles& particles);

// `wanted` indices of [0, particles), evenly spread; all where `wanted` is 0 or more than `particles`.
std::vector<std::size_t> spread_targets(std::size_t particles, std::size_t wanted);

}  // namespace maki
