// Ghosts: the particles of other ranks that a rank needs for its tree to equal the tree over all particles wherever its
// walks can go.
#pragma once

#include <cstdint>

#include "kernels/tree/opening.hpp"

namespace maki {

// The level of the cells that ghosts complete, for so many particles in all: 1.5 to 12 particles a cell on average, so
// that the margins around a domain are thin and groups of neighbouring cells are still well filled. At least `least`.
int whole_cell_level(std::uint64_t particles, int least);

// How far beyond the cutoff r_cut (sides) a rank's ghosts may reach from its domain (sides).
double whole_cell_margin(int level);

// For estimates: the number of ghosts of a rank, for `particles` on all `ranks` of all `sites`. Its domain is taken as
// a cube, and ghosts from other sites for a slab go to all ranks. Also the bytes of a ghost in transit, at both ends.
double expected_ghosts(double particles, double r_cut, int ranks, int sites);
inline constexpr double kGhostSentBytes = 76;

// `target` (with half extents in units of the last bit, as from walk_target()) grown to all cells that its particles'
// walks can visit: the cells one level above `level` that it touches, which contain its groups, and all cells of
// `level` within r_cut (sides) of those.
WalkTarget grow_to_whole_cells(const WalkTarget& target, float r_cut, int level);

}  // namespace maki
