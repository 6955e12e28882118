#include "src/gravity/reference/direct.hpp"

#include <cmath>

namespace maki {

namespace {

// The cubic spline's potential is piecewise polynomial in q = r / h; coefficients of q^-1 .. q^5 of p h.
struct SplinePiece {
  double inverse;
  double power[6];
};
constexpr SplinePiece kInner = {0, {14.0 / 5, 0, -16.0 / 3, 0, 48.0 / 5, -32.0 / 5}};
constexpr SplinePiece kOuter = {-1.0 / 15, {16.0 / 5, 0, -32.0 / 3, 16, -48.0 / 5, 32.0 / 15}};

// p and -p'/r.
PairValue spline_pair(double q, double h) {
  const SplinePiece& piece = q < 0.5 ? kInner : kOuter;
  double p = piece.inverse == 0 ? 0 : piece.inverse / q;
  double g = piece.inverse == 0 ? 0 : piece.inverse / (q * q * q);
  double power = 1;  // q^(j - 2), for j >= 2
  p += piece.power[0];
  for (int j = 2; j < 6; ++j, power *= q) {
    p += piece.power[j] * power * q * q;
    g -= j * piece.power[j] * power;
  }
  return {g / (h * h * h), p / h};
}

}  // namespace

PairValue softened_newton(double r2, Softening kind, double softening) {
  if (kind == Softening::kSpline) {
    const double r = std::sqrt(r2), h = kSplineSupport * softening;
    if (r < h) return spline_pair(r / h, h);
    return {1 / (r2 * r), 1 / r};
  }
  const double s2 = r2 + softening * softening, inverse = 1 / std::sqrt(s2);
  return {inverse / s2, inverse};
}

ReferenceForces direct_reference_of_parts(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                          const std::vector<Vector3>& targets, const DirectReferenceOptions& options,
                                          const SumOfParts& sum) {
  TargetSums sums(targets.size());
#pragma omp parallel for schedule(dynamic, 4)
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const Vector3 at = targets[t];
    TargetSum force;
    for (std::size_t j = 0; j < positions.size(); ++j) {
      const double x = positions[j][0] - at[0], y = positions[j][1] - at[1], z = positions[j][2] - at[2];
      const double r2 = x * x + y * y + z * z;
      if (r2 == 0) continue;
      const PairValue pair = softened_newton(r2, options.kind, options.softening);
      force.add(masses[j] * pair.g, {x, y, z}, masses[j] * pair.p);
    }
    sums.set(t, force);
  }
  return sums.over_parts(sum);
}

ReferenceForces direct_reference(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                 const std::vector<std::size_t>& targets, const DirectReferenceOptions& options) {
  return direct_reference_of_parts(positions, masses, places_of(positions, targets), options, whole_set);
}

}  // namespace maki
