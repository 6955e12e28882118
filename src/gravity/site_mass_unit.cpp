#include "src/gravity/site_mass_unit.hpp"

#include <algorithm>

#include "host/fft/mass_unit.hpp"

namespace maki {
namespace {

// Of sets one after another; sets without massive particles have no range.
void join(MassRange& all, const MassRange& one) {
  all.massless = all.massless || one.massless;
  all.invalid = all.invalid || one.invalid;
  if (!(one.largest > 0)) return;
  all.smallest = all.largest > 0 ? std::min(all.smallest, one.smallest) : one.smallest;
  all.largest = std::max(all.largest, one.largest);
}

}  // namespace

MassUnit mass_unit_of_sites(sites::Sites& sites, const Stream& stream, const MeshOptions& options,
                            const SourceParticle* particles, std::size_t n) {
  MassTotals totals = mass_totals(sites.ranks(), stream, particles, n);
  MassRange all;
  for (const auto& message : sites.gather(sites::Phase::kOutput, 0, sites::as_bytes_of(totals.range)))
    join(all, sites::value_of<MassRange>(message));
  struct Sums {
    std::uint64_t particles, units;
  } mine = {totals.particles, finest_units(stream, particles, n, all)};
  sites.ranks().sum(std::span(&mine.units, 1));
  totals = {.particles = 0, .range = all, .finest_units = 0};
  for (const auto& message : sites.gather(sites::Phase::kOutput, 0, sites::as_bytes_of(mine))) {
    const auto sums = sites::value_of<Sums>(message);
    totals.particles += sums.particles;
    totals.finest_units += sums.units;
  }
  return choose_mass_unit(options.assignment, options.cells, totals, options.mass_bits);
}

}  // namespace maki
