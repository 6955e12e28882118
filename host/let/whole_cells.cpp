#include "host/let/whole_cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/tree/octree.hpp"

namespace maki {
namespace {

constexpr std::int64_t kSide = kUnitsOfSide;
// Factor on the cutoff: boxes and distances are rounded.
constexpr double kReach = 1.0001;
constexpr std::uint64_t kParticlesOfACell = 12;

std::int64_t floor_to(std::int64_t value, std::int64_t step) { return value & -step; }
std::int64_t ceil_to(std::int64_t value, std::int64_t step) { return floor_to(value + step - 1, step); }

void grow_axis(double r_cut, int level, std::uint32_t& centre, float& half) {
  const std::int64_t cell = kSide >> level, middle = centre;
  const auto extent = static_cast<std::int64_t>(std::ceil(std::min(static_cast<double>(half), 0.5 * kSideToUnits)));
  const auto reach = static_cast<std::int64_t>(std::ceil(kReach * r_cut * kSideToUnits));
  // A particle at the far end of an interval belongs to the cell that begins there.
  const std::int64_t low = floor_to(floor_to(middle - extent, 2 * cell) - reach, cell);
  const std::int64_t high = ceil_to(ceil_to(middle + extent + 1, 2 * cell) + reach, cell);
  const std::int64_t length = std::min(high - low, kSide);
  centre = static_cast<std::uint32_t>(length == kSide ? middle : low + length / 2);
  half = std::nextafter(static_cast<float>(length - length / 2), std::numeric_limits<float>::max());
}

}  // namespace

int whole_cell_level(std::uint64_t particles, int least) {
  int level = std::max(least, 1);
  while (level < kMortonLevels - 1 && (std::uint64_t{1} << (3 * level)) * kParticlesOfACell < particles) ++level;
  return level;
}

double whole_cell_margin(int level) { return 3 * std::ldexp(1.0, -level); }

double expected_ghosts(double particles, double r_cut, int ranks, int sites) {
  const int level = whole_cell_level(static_cast<std::uint64_t>(particles), kPeriodicMinLevel);
  const double margin = r_cut + 0.5 * whole_cell_margin(level);
  const double side = 1 / std::cbrt(static_cast<double>(ranks) * sites), slab = 1.0 / sites;
  const double around = std::min(1.0, side + 2 * margin);
  const double of_ranks = ranks > 1 ? around * around * around - side * side * side : 0;
  return particles * (of_ranks + std::min(1 - slab, 2 * margin));
}

WalkTarget grow_to_whole_cells(const WalkTarget& target, float r_cut, int level) {
  WalkTarget grown = target;
  grow_axis(r_cut, level, grown.x, grown.hx);
  grow_axis(r_cut, level, grown.y, grown.hy);
  grow_axis(r_cut, level, grown.z, grown.hz);
  return grown;
}

}  // namespace maki
