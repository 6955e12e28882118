#include "src/gravity/reference/direct.hpp"

#include "src/gravity/reference/target_sums.hpp"

namespace maki {

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
