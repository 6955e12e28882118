#include "src/simulation/energy.hpp"

#include <algorithm>
#include <cmath>

namespace maki {

void EnergyTracker::add_kinetic(double a, double kinetic) {
  if (has_kinetic_ && comoving_) integral_ += 0.5 * (kinetic + last_kinetic_) * (a - last_a_);
  has_kinetic_ = true;
  last_a_ = a;
  last_kinetic_ = kinetic;
}

EnergyReport EnergyTracker::add(double a, double kinetic, double potential) {
  add_kinetic(a, kinetic);
  scale_ = std::max(scale_, std::fabs(a * potential));
  if (!has_start_) {
    has_start_ = true;
    integral_ = 0;
    start_ = a * (kinetic + potential);
  }
  const double now = a * (kinetic + potential) + integral_ + removed_;
  double scale = scale_;
  if (!comoving_ && std::fabs(start_) > 1e-6 * std::fabs(potential)) scale = std::fabs(start_);
  return {kinetic, potential, integral_, scale > 0 ? (now - start_) / scale : 0};
}

}  // namespace maki
