#include "kernels/mesh/mass_unit.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/device/thrust.cuh"
#include "kernels/error.hpp"
#include "kernels/mesh/cloud.hpp"

namespace maki {
namespace {

struct RangeOfOne {
  const SourceParticle* particles;
  MAKI_HD MassRange operator()(std::size_t i) const {
    const float m = particles[i].mass;
    const bool valid = m >= 0 && m <= 3.4e38f;
    const bool counts = valid && m > 0;
    return {counts ? m : 0, counts ? m : 0, valid && m == 0, !valid};
  }
};

struct JoinRanges {
  MAKI_HD MassRange operator()(MassRange a, const MassRange& b) const {
    a.join(b);
    return a;
  }
};

struct UnitsOfOne {
  const SourceParticle* particles;
  double units_per_mass;
  MAKI_HD std::uint64_t operator()(std::size_t i) const { return units_of(particles[i].mass, 0, units_per_mass); }
};

struct HasMass {
  const SourceParticle* particles;
  float mass;
  MAKI_HD std::uint64_t operator()(std::size_t i) const { return particles[i].mass == mass ? 1 : 0; }
};

// log2 of the largest product of three weights.
double log2_peak_weight(Assignment assignment) {
  if (assignment == Assignment::kPcs) return 3 * std::log2(2.0 / 3.0);
  return assignment == Assignment::kTsc ? 3 * std::log2(0.75) : 0.0;
}

constexpr double kMargin = 0.01;  // in log2: weights and shares are rounded
constexpr int kMostDropped = 48;  // at least 14 bits of a sum remain
constexpr int kMaxUnitBits = 30;  // of the heaviest particle: units are 32-bit, also as signed numbers

// All particles have one mass, or none has any.
bool alike(const MassRange& range) {
  return range.largest == 0 || (range.smallest == range.largest && !range.massless);
}
int finest_exponent(const MassRange& range) { return kMaxUnitBits - 1 - std::ilogb(range.largest); }

// Bits to drop from a cell's sum. `quanta`: of a particle, the lightest where masses differ, so that those of a zoom
// keep their mass; `crowd`: particles a cell. The pull of what is dropped, one cell away, may be 2^-mass_bits of a
// particle's at the mean distance: quanta crowd^(2/3) 2^-mass_bits may be dropped. No roots, so that the result does
// not depend on a math library's last digit.
int bits_to_drop(double quanta, double crowd, int mass_bits) {
  if (mass_bits <= 0 || quanta <= 0) return 0;
  const int cube = std::ilogb(quanta * quanta * quanta * crowd * crowd);
  return std::clamp((cube >= 0 ? cube / 3 : 0) - mass_bits, 0, kMostDropped);
}

// Bits by which shares are rounded finer than sums. A cell has some 64 `crowd` shares, whose errors add up as the root
// of their number; together they are to be half of the sum's error.
int finer_shares(double crowd) { return 4 + (crowd > 1 ? (std::ilogb(crowd) + 1) / 2 : 0); }

}  // namespace

MassRange mass_range(const Stream& stream, const SourceParticle* particles, std::size_t n) {
  return reduce_over(stream, "mesh.mass_range", Reduction{n, RangeOfOne{particles}, MassRange{}, JoinRanges{}});
}

std::uint64_t finest_units(const Stream& stream, const SourceParticle* particles, std::size_t n,
                           const MassRange& range) {
  if (alike(range) || range.invalid) return 0;
  return sum_over(stream, "mesh.mass_sum", n, UnitsOfOne{particles, std::exp2(finest_exponent(range))});
}

std::uint64_t count_heaviest(const Stream& stream, const SourceParticle* particles, std::size_t n,
                             const MassRange& range) {
  if (alike(range) || range.invalid) return 0;
  return sum_over(stream, "mesh.mass_count", n, HasMass{particles, range.largest});
}

MassUnit choose_mass_unit(Assignment assignment, int cells, const MassTotals& totals, int mass_bits) {
  MassUnit unit;
  const MassRange& range = totals.range;
  if (range.invalid)
    throw Error("cannot put the masses on the mesh", "a mass is negative or not a finite number", "check the input");
  const double peak = log2_peak_weight(assignment), total_cells = std::pow(cells, 3.0);
  const auto n = static_cast<double>(totals.particles);
  const double in_cell = std::clamp(n, 1.0, std::max(kMostInCell, kMostOverMean * n / total_cells));
  unit.bits = std::min(static_cast<int>(std::floor((63 - kMargin - peak - std::log2(in_cell)) / 3)), 15);
  const double scale = std::exp2(unit.bits);
  double units = 0, units_of_cell = 0;  // of all particles, and of those that one cell may have
  if (range.largest == 0) {
    unit.units_per_mass = 1;
  } else if (alike(range)) {
    unit.equal_units = 1u << (2 * unit.bits);
    unit.units_per_mass = unit.equal_units / static_cast<double>(range.largest);
    units = n * unit.equal_units;
    units_of_cell = in_cell * unit.equal_units;
  } else {
    // The finest power of two for which the heaviest particle fits, then coarser until the sum does. Counting whole
    // units keeps the choice independent of the order of summation.
    const double sum = totals.finest_units.total();
    units_of_cell = std::min(sum, in_cell * std::exp2(kMaxUnitBits));
    const double excess = std::log2(units_of_cell) + unit.bits + peak + kMargin - 63;
    const int coarser = std::max(0, static_cast<int>(std::ceil(excess)));
    unit.units_per_mass = std::exp2(finest_exponent(range) - coarser);
    units = sum * std::exp2(-coarser);
    units_of_cell *= std::exp2(-coarser);
    if (range.smallest * unit.units_per_mass < 50)
      throw Error("cannot put the masses on the mesh",
                  "they span a factor of " + std::to_string(range.largest / range.smallest) +
                      ", and the lightest would be off by more than 1 %",
                  "leave out the lightest particles or bring the masses closer together");
  }
  unit.quantum = 1.0 / (unit.units_per_mass * scale);
  unit.mean_mass = n > 0 ? units / unit.units_per_mass / n : 0;
  if (totals.heaviest == 1 && range.largest >= MassUnit::kLone * unit.mean_mass) unit.lone_mass = range.largest;
  unit.mean = static_cast<std::int64_t>(std::floor(units * scale / total_cells));
  unit.largest_cell = units_of_cell * scale * std::exp2(peak + kMargin);
  const double mean = n > 0 ? units / n : 0;
  const double lightest = alike(range) ? mean : std::min(mean, range.smallest * unit.units_per_mass);
  unit.dropped_bits = bits_to_drop(lightest * scale, n / total_cells, mass_bits);
  unit.shed_bits = std::max(0, unit.dropped_bits - finer_shares(n / total_cells));
  return unit;
}

MassUnit choose_mass_unit(const Stream& stream, Assignment assignment, int cells, const SourceParticle* particles,
                          std::size_t n, int mass_bits) {
  MassTotals totals{n, mass_range(stream, particles, n), {}, 0};
  totals.finest_units = UnitSum(finest_units(stream, particles, n, totals.range));
  totals.heaviest = count_heaviest(stream, particles, n, totals.range);
  return choose_mass_unit(assignment, cells, totals, mass_bits);
}

}  // namespace maki
