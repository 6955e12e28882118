#include "src/simulation/energy.hpp"

#include <algorithm>
#include <cmath>

namespace maki {

void EnergyTracker::add_kinetic(double a, double kinetic) {
  if (s_.has_kinetic && comoving_) s_.integral += 0.5 * (kinetic + s_.last_kinetic) * (a - s_.last_a);
  s_.has_kinetic = true;
  s_.last_a = a;
  s_.last_kinetic = kinetic;
}

EnergyReport EnergyTracker::add(double a, double kinetic, double potential) {
  add_kinetic(a, kinetic);
  s_.scale = std::max(s_.scale, std::fabs(a * potential));
  if (!s_.has_start) {
    s_.has_start = true;
    s_.integral = 0;
    s_.start = a * (kinetic + potential);
  }
  const double now = a * (kinetic + potential) + s_.integral + s_.removed;
  double scale = s_.scale;
  if (!comoving_ && std::fabs(s_.start) > 1e-6 * std::fabs(potential)) scale = std::fabs(s_.start);
  return {kinetic, potential, s_.integral, scale > 0 ? (now - s_.start) / scale : 0};
}

}  // namespace maki
