#include "src/simulation/totals.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace maki {

void publish_totals(sites::Sites& sites, std::uint64_t number, const SiteTotals& mine) {
  sites.publish(sites::Phase::kOutput, number, sites::as_bytes_of(mine));
}

SiteTotals collect_totals(sites::Sites& sites, std::uint64_t number) {
  using Numbers = std::array<double, sizeof(SiteTotals) / sizeof(double)>;
  Numbers all{};
  for (const auto& message : sites.collect(sites::Phase::kOutput, number)) {
    const auto one = sites::value_of<Numbers>(message);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += one[i];
  }
  return std::bit_cast<SiteTotals>(all);
}

void EnergyTracker::add_kinetic(double a, double kinetic) {
  if (s_.has_kinetic && comoving_) s_.integral += 0.5 * (kinetic + s_.last_kinetic) * (a - s_.last_a);
  s_.has_kinetic = true;
  s_.last_a = a;
  s_.last_kinetic = kinetic;
}

EnergyReport EnergyTracker::add(double a, double kinetic, double potential, const BulkEnergy& bulk) {
  add_kinetic(a, kinetic);
  s_.scale = std::max(s_.scale, std::fabs(a * potential));
  const double gained = comoving_ ? 0 : bulk.gained;
  if (!s_.has_start) {
    s_.has_start = true;
    s_.integral = 0;
    s_.start = a * (kinetic + potential) + s_.removed - gained;
    s_.bulk = bulk.kinetic;
  }
  const double now = a * (kinetic + potential) + s_.integral + s_.removed - gained;
  double scale = s_.scale;
  const double own = std::fabs(s_.start - s_.bulk);
  if (!comoving_ && own > 1e-6 * std::fabs(potential)) scale = own;
  return {kinetic, potential, s_.integral, scale > 0 ? (now - s_.start) / scale : 0};
}

}  // namespace maki
