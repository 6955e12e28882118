// Reference sums in double precision: the direct sum over an isolated set, and Ewald's over a periodic box (Ewald 1921;
// Hernquist, Bouchet & Suto 1991).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "kernels/force/split.hpp"

namespace maki {

using Vector3 = std::array<double, 3>;

// The softened pair force in double precision, independent of kernels/force, which it checks.
struct PairValue {
  double g;  // acceleration = m g r towards the source
  double p;  // potential = -m p
};

// Newton's pair force at distance^2 r2 with the Plummer length `softening` (0: not softened); the spline's support is
// 2.8 times this length.
PairValue softened_newton(double r2, Softening kind, double softening);

// Results of a reference sum, by target.
struct ReferenceForces {
  std::vector<Vector3> acceleration;  // mass / side^2, G = 1
  std::vector<double> potential;      // mass / side, G = 1; without the target's own -m / softening
};

// Sums arrays element by element over the processes that each hold a part of a set. Collective.
using SumOfParts = std::function<void(std::span<double>)>;
// SumOfParts where this process holds all particles.
inline void whole_set(std::span<double>) {}

struct ReferenceOptions {
  Softening kind = Softening::kPlummer;
  double softening = 0;  // sides; 0: none
  // Of Ewald's sum: splitting parameter, 1 / side. The near sum reaches 5.6 / alpha, waves go to 5.6 alpha / pi; they
  // share the work, and the result does not depend on it.
  double alpha = 11.2;
};

// Acceleration and potential at the positions `targets`, equal on all processes. Positions in sides, not wrapped;
// masses of the same length. Pairs at zero distance, as of a target with itself, are left out. O(targets x particles),
// on all threads.
ReferenceForces direct_reference(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                 const std::vector<Vector3>& targets, const ReferenceOptions& options,
                                 const SumOfParts& sum = whole_set);

// Acceleration and potential at the positions `targets`, equal on all processes. The sources are all particles, their
// periodic images, and a uniform background that cancels the mean density: acceleration = -grad Phi with laplace Phi =
// 4 pi (rho - mean rho), and the mean of Phi over the box is 0. A target that is a particle has the particle's position
// to the last bit. Positions are fractions of the side, any image; masses of the same length. Only the nearest image is
// softened (softening would change the others by a fraction (softening / side)^2). The potential leaves out -m /
// softening of the particles at the target's own point, but not their images. Truncation errors are 1e-11 of the force
// of one particle at half a side.
// Time: waves (17000 of them) x particles + targets x particles, on all threads.
ReferenceForces ewald_reference(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                const std::vector<Vector3>& targets, const ReferenceOptions& options,
                                const SumOfParts& sum = whole_set);

}  // namespace maki
