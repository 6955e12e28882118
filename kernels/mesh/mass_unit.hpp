// Masses as integers, which make the mesh of given particles independent of the order of additions (docs/design.md,
// "Numbers").
//
// A particle has a whole number of units. They are split over the cells in x, and each share over the cells in y, both
// exactly (integer products, the rest to one cell). The share of a row is multiplied by the z weights, which are
// integers that sum to 2^bits. So a cell counts quanta of mass 1 / (units_per_mass 2^bits), and the sum over all cells
// is exact. Where all masses are equal, a particle has 2^(2 bits) units, and a cell's share is the plain product of the
// three weights.
//
// Sites that share a mesh have coarser counts, so that few bytes are sent between them (`mass_bits` below). A
// particle's contribution to a cell is rounded to a multiple of 2^shed_bits, and the complete sum of a cell to a
// multiple of 2^dropped_bits. The bits of the mesh then still depend on the particles alone.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/device/macros.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

enum class Assignment { kCic = 2, kTsc = 3, kPcs = 4 };  // value: cells that a particle touches on an axis

// f.operator()<S>() for a cloud that touches S cells an axis.
template <class F>
void for_cloud(Assignment cloud, const F& f) {
  if (cloud == Assignment::kCic) f.template operator()<2>();
  if (cloud == Assignment::kTsc) f.template operator()<3>();
  if (cloud == Assignment::kPcs) f.template operator()<4>();
}

// Bound on the particles in one cell: the larger of kMostInCell and kMostOverMean times the mean of all cells. The
// fullest cell of a simulation of 10^12 particles, in the middle of a halo, has some 10^7 at a mean of a few. A bound
// by the number of all particles would take two bits of each weight at 10^10 of them, and the mesh force of early times
// would be off by 7e-4 of its rms instead of 2e-4.
inline constexpr double kMostInCell = 0x1p27, kMostOverMean = 0x1p20;

struct MassUnit {
  int bits = 0;                   // the weights of one axis sum to 2^bits
  std::uint32_t equal_units = 0;  // units of every particle where all masses are equal, else 0
  double units_per_mass = 0;      // a power of two where masses differ
  double quantum = 0;             // mass of one count in a cell
  std::int64_t mean = 0;          // mean quanta in a cell, rounded down; subtracted before the mesh becomes float
  double largest_cell = 0;        // bound on the quanta in one cell; below 2^63
  int shed_bits = 0;              // at most dropped_bits; 0: contributions are exact
  int dropped_bits = 0;           // 0: the sum of a cell is not rounded
  double mean_mass = 0;           // of a particle
  // Mass of the heaviest particle, where no other has it and it is at least kLone mean ones; else 0.
  float lone_mass = 0;
  static constexpr double kLone = 500;

  std::uint64_t rounded(std::uint64_t sum) const { return (sum + half_of(dropped_bits)) & kept_of(dropped_bits); }
  // Rounds to the nearest multiple of 2^bits, ties up: (count + half_of(bits)) & kept_of(bits).
  static std::uint64_t half_of(int bits) { return bits ? std::uint64_t{1} << (bits - 1) : 0; }
  static std::uint64_t kept_of(int bits) { return ~((std::uint64_t{1} << bits) - 1); }
  bool operator==(const MassUnit&) const = default;
};

struct MassRange {
  float smallest = 0, largest = 0;  // of the masses above zero; massless particles do not count
  bool massless = false;            // there are particles without mass
  bool invalid = false;             // there are negative or non-finite masses

  // Sets without massive particles have no range.
  MAKI_HD void join(const MassRange& other) {
    massless = massless || other.massless;
    invalid = invalid || other.invalid;
    if (!(other.largest > 0)) return;
    if (largest == 0 || other.smallest < smallest) smallest = other.smallest;
    if (largest < other.largest) largest = other.largest;
  }
};
MassRange mass_range(const Stream& stream, const SourceParticle* particles, std::size_t n);

// Sum of the particles' masses in whole numbers of the finest unit, a power of two that follows from range.largest.
// Exact: sums over the parts of a set add up to the sum over the set. 0 where all masses are equal, and nothing is
// summed.
std::uint64_t finest_units(const Stream& stream, const SourceParticle* particles, std::size_t n,
                           const MassRange& range);
// The number of particles of mass range.largest; 0 where all masses are equal.
std::uint64_t count_heaviest(const Stream& stream, const SourceParticle* particles, std::size_t n,
                             const MassRange& range);

// Sum of finest_units() over the parts of a set, exact: 64 bits hold those of some 2^34 heavy particles.
struct UnitSum {
  std::uint64_t high = 0, low = 0;  // multiples of 2^32, and the rest

  UnitSum() = default;
  explicit UnitSum(std::uint64_t units) : high(units >> 32), low(units & 0xffffffff) {}
  void add(const UnitSum& other) { high += other.high, low += other.low; }
  double total() const { return std::ldexp(static_cast<double>(high + (low >> 32)), 32) + (low & 0xffffffff); }
};

// Everything that the unit of a set depends on. Sets are joined by joining their ranges and adding up the rest (units
// for the same range).
struct MassTotals {
  std::uint64_t particles = 0;
  MassRange range;
  UnitSum finest_units;
  std::uint64_t heaviest = 0;  // particles of mass range.largest; 0 where all masses are equal
};

// The unit for these particles: the finest whose bound (largest_cell) holds. Throws Error where a mass is negative or
// not finite, and where masses differ so much that the smallest would be off by more than one per cent. `mass_bits` of
// 0: nothing is rounded. Else the sum of a cell is rounded to 2^dropped_bits quanta, the largest power of two that is
// at most m (n / cells^3)^(2/3) 2^-mass_bits, m the least mass. The error of the cell's pull on the next cell is then
// at most about 2^-mass_bits of a particle's pull at the mean distance of particles. Particles' shares are rounded
// finer (shed_bits), so that they add little error.
MassUnit choose_mass_unit(Assignment assignment, int cells, const MassTotals& totals, int mass_bits = 0);
MassUnit choose_mass_unit(const Stream& stream, Assignment assignment, int cells, const SourceParticle* particles,
                          std::size_t n, int mass_bits = 0);

}  // namespace maki
