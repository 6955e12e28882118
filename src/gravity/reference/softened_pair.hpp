// The softened pair force in double precision, for the reference sums. Independent of kernels/force, which it checks.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "kernels/force/split.hpp"

namespace maki {

using Vector3 = std::array<double, 3>;

struct PairValue {
  double g;  // acceleration = m g r towards the source
  double p;  // potential = -m p
};

// Newton's pair at distance^2 r2, softened (Plummer length `softening`; the spline's support is 2.8 of it; 0: not at
// all).
PairValue softened_newton(double r2, Softening kind, double softening);

// Results of a reference sum, by target.
struct ReferenceForces {
  std::vector<Vector3> acceleration;  // mass / side^2, G = 1
  std::vector<double> potential;      // mass / side, G = 1; without the target's own -m / softening
};

// Element by element, the sum of all parts of a set that lies on several processes. Collective.
using SumOfParts = std::function<void(std::span<double>)>;

}  // namespace maki
