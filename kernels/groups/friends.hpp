// Friends of friends (Davis, Efstathiou, Frenk & White 1985, ApJ 292, 371): particles no farther apart than the linking
// length are friends, and groups are the connected components of friendship.
//
// The groups are found over an existing tree, by union-find. A cell whose particles are all friends is one unit,
// whatever its size (the dense boxes of FDBSCAN: Prokopenko, Lebrun-Grandie & Arndt 2023, ICPP); so is each other leaf.
// Each unit is compared with the later units in Morton order that are within reach. Friendship is decided in integers,
// so the groups are the same on every machine, for any number of threads.
#pragma once

#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/particles/types.hpp"
#include "kernels/tree/octree.hpp"

namespace maki {

// Boxes of a tree's cells as integers, and distances between them on the periodic lattice, all exact.
//
// A box spans the particles' coordinates on each axis, ends included. A cell's cube does not cross the border of the
// periodic box, so neither does its box: low <= high. Squared distances fit 64 bits: the distance to a nearest image is
// at most 2^31 on an axis, and 3 * 2^62 < 2^64.
struct CellBox {
  std::uint32_t low[3], high[3];
};

MAKI_HD CellBox box_of(const SourceParticle& p) { return {{p.x, p.y, p.z}, {p.x, p.y, p.z}}; }

MAKI_HD void grow(CellBox& box, const CellBox& by) {
  for (int k = 0; k < 3; ++k) {
    box.low[k] = by.low[k] < box.low[k] ? by.low[k] : box.low[k];
    box.high[k] = by.high[k] > box.high[k] ? by.high[k] : box.high[k];
  }
}

// From the end of one interval to the begin of the other, the shorter way around; 0 where they overlap.
MAKI_HD std::uint32_t gap(std::uint32_t low_a, std::uint32_t high_a, std::uint32_t low_b, std::uint32_t high_b) {
  if (low_b <= high_a && low_a <= high_b) return 0;
  const std::uint32_t up = low_b - high_a, down = low_a - high_b;
  return up < down ? up : down;
}

MAKI_HD std::uint64_t square(std::uint32_t distance) { return static_cast<std::uint64_t>(distance) * distance; }

// Squared distance of two boxes: a lower bound for that of two particles in them.
MAKI_HD std::uint64_t gap_squared(const CellBox& a, const CellBox& b) {
  std::uint64_t sum = 0;
  for (int k = 0; k < 3; ++k) sum += square(gap(a.low[k], a.high[k], b.low[k], b.high[k]));
  return sum;
}

MAKI_HD std::uint64_t distance_squared(const SourceParticle& a, const SourceParticle& b) {
  const std::int64_t x = signed_difference(a.x, b.x), y = signed_difference(a.y, b.y), z = signed_difference(a.z, b.z);
  return static_cast<std::uint64_t>(x * x) + static_cast<std::uint64_t>(y * y) + static_cast<std::uint64_t>(z * z);
}

// True only if every particle in one box is within sqrt(limit) of every particle in the other; limit < 2^62. False is
// no proof of the contrary. For a box and itself: whether its diagonal is within sqrt(limit).
MAKI_HD bool all_within(const CellBox& a, const CellBox& b, std::uint64_t limit) {
  std::uint64_t sum = 0;
  for (int k = 0; k < 3; ++k) {
    const std::uint64_t between = gap(a.low[k], a.high[k], b.low[k], b.high[k]);
    const std::uint32_t low = a.low[k] < b.low[k] ? a.low[k] : b.low[k];
    const std::uint32_t high = a.high[k] > b.high[k] ? a.high[k] : b.high[k];
    const std::uint64_t far = between > 0 ? between + (a.high[k] - a.low[k]) + (b.high[k] - b.low[k]) : high - low;
    if (far >> 31 != 0) return false;
    sum += far * far;
  }
  return sum <= limit;
}

// The boxes of all cells of a tree over `particles`, by cell index; one launch a level.
void make_cell_boxes(const Stream& stream, const SourceParticle* particles, const Octree& tree,
                     DeviceBuffer<CellBox>& boxes);

// Throws Error where a linking length (sides) is not positive and below half a side.
void require_linking_length(double length);
// The square of a distance in sides, 0 to 1/2, in units of the last bit, rounded down.
inline std::uint64_t squared_units(double sides) {
  const double units = sides * kSideToUnits;
  return static_cast<std::uint64_t>(units * units);
}

// Labels the groups: labels[i] (resized) is the least index of a particle in the group of particle i, so i itself where
// it has no friends. `particles` are in Morton order, `tree` is build_octree() over their keys, `boxes` its
// make_cell_boxes(). `length`: the linking length in sides, compared as squared_units(); periodic. Throws Error as
// require_linking_length(). Four launches, and a selection whose count is copied to the host.
void find_friends(const Stream& stream, const SourceParticle* particles, const Octree& tree,
                  const DeviceBuffer<CellBox>& boxes, double length, DeviceBuffer<std::uint32_t>& labels);

}  // namespace maki
