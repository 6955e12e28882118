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
  totals.finest_units = finest_units(stream, particles, n, totals.range);
  sites.ranks().sum(std::span(&totals.finest_units, 1));
  struct Sums {
    std::uint64_t particles, units;
  };
  const Sums all = sites.joined(sites::Phase::kOutput, 0, Sums{totals.particles, totals.finest_units},
                                [](Sums& sum, const Sums& one) {
                                  sum.particles += one.particles;
                                  sum.units += one.units;
                                });
  totals.particles = all.particles;
  totals.finest_units = all.units;
  return choose_mass_unit(options.assignment, options.cells, totals, options.mass_bits);
}

}  // namespace maki
