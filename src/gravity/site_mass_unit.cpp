#include "src/gravity/site_mass_unit.hpp"

#include <algorithm>

#include "host/fft/particle_brick.hpp"

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
  totals.range = sites.joined(sites::Phase::kOutput, 0, totals.range, join);
  struct Sums {
    std::uint64_t particles, units, heaviest;
  };
  Sums here{totals.particles, finest_units(stream, particles, n, totals.range),
            count_heaviest(stream, particles, n, totals.range)};
  sites.ranks().sum(std::span(&here.units, 1));
  sites.ranks().sum(std::span(&here.heaviest, 1));
  const Sums all = sites.joined(sites::Phase::kOutput, 0, here, [](Sums& sum, const Sums& one) {
    sum.particles += one.particles;
    sum.units += one.units;
    sum.heaviest += one.heaviest;
  });
  totals.particles = all.particles;
  totals.finest_units = all.units;
  totals.heaviest = all.heaviest;
  return choose_mass_unit(options.assignment, options.cells, totals, options.mass_bits);
}

}  // namespace maki
