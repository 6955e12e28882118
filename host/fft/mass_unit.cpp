#include "host/fft/mass_unit.hpp"

#include <array>

namespace maki {

MassRange mass_range(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                     std::size_t n) {
  const MassRange mine = mass_range(stream, particles, n);
  double smallest = mine.smallest;
  std::array<double, 3> most = {mine.largest, mine.massless ? 1.0 : 0.0, mine.invalid ? 1.0 : 0.0};
  communicator.min({&smallest, 1});
  communicator.max(most);
  return {static_cast<float>(smallest), static_cast<float>(most[0]), most[1] > 0, most[2] > 0};
}

MassTotals mass_totals(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                       std::size_t n) {
  MassTotals totals;
  totals.range = mass_range(communicator, stream, particles, n);
  std::array<std::uint64_t, 2> sums = {n, finest_units(stream, particles, n, totals.range)};
  communicator.sum(sums);
  totals.particles = sums[0];
  totals.finest_units = sums[1];
  return totals;
}

MassUnit choose_mass_unit(const Communicator& communicator, const Stream& stream, Assignment assignment, int cells,
                          const SourceParticle* particles, std::size_t n) {
  return choose_mass_unit(assignment, cells, mass_totals(communicator, stream, particles, n));
}

}  // namespace maki
