#include "src/gravity/reference/direct.hpp"

namespace maki {

ReferenceForces direct_reference(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                 const std::vector<std::size_t>& targets, const DirectReferenceOptions& options) {
  const std::size_t count = targets.empty() ? positions.size() : targets.size();
  ReferenceForces forces{std::vector<Vector3>(count), std::vector<double>(count)};
#pragma omp parallel for schedule(dynamic, 4)
  for (std::size_t t = 0; t < count; ++t) {
    const Vector3 at = positions[targets.empty() ? t : targets[t]];
    Vector3 a{};
    double potential = 0;
    for (std::size_t j = 0; j < positions.size(); ++j) {
      const double x = positions[j][0] - at[0], y = positions[j][1] - at[1], z = positions[j][2] - at[2];
      const double r2 = x * x + y * y + z * z;
      if (r2 == 0) continue;
      const PairValue pair = softened_newton(r2, options.kind, options.softening);
      const double mg = masses[j] * pair.g;
      a[0] += mg * x, a[1] += mg * y, a[2] += mg * z;
      potential -= masses[j] * pair.p;
    }
    forces.acceleration[t] = a;
    forces.potential[t] = potential;
  }
  return forces;
}

}  // namespace maki
