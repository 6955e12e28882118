// Interaction lists: for each group, the cells that serve as multipoles and the leaves that are taken particle by particle.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/tree/octree.hpp"

namespace maki {

// Distance on one axis from a point at `a` to a box about `b` of half extent h, in sides; 0 inside.
MAKI_HD float gap(std::uint32_t a, std::uint32_t b, float h) {
  const float d = std::fabs(separation(a, b)) - h;
  return d > 0 ? d : 0;
}

// The opening criterion (DESIGN section 2; Barnes 1990 with the offset of Salmon & Warren): a cell serves
// as a multipole when the distance from the group's box to its centre of mass exceeds size / theta + offset.
// Cells whose box is farther than r_cut (sides) from the group's box are left out; r_cut = 0: none is.
struct WalkOptions {
  float theta = 0.5f;
  float r_cut = 0;
  std::uint32_t small_cell = 6;  // cells of at most this many are taken particle by particle: a quadrupole costs four
};

// Lists of all groups, in one array of words. Device memory; `ranges[g]` says where group g's list stands.
struct InteractionLists {
  DeviceBuffer<ListRange> ranges{"lists.ranges"};
  DeviceBuffer<std::uint32_t> words{"lists.words"};
  std::uint64_t used = 0;  // words in use; a rewalked group's old list stays behind as a gap
};

// Walks the tree for every group of [begin, end) (or for the `count` groups named in `selected`). Replaces all
// lists where `append` is false, else adds words behind those in use and redirects the ranges of these groups.
struct WalkRequest {
  const Group* groups;
  std::uint32_t group_count;       // of all groups: the length of `ranges`
  const std::uint32_t* selected;   // device; nullptr: all of [begin, begin + count)
  std::uint32_t begin, count;
  bool append = false;
};
void walk_tree(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
               InteractionLists& lists);

// Groups whose kept list holds a cell that no longer satisfies the opening criterion by more than `margin`
// (distance < (1 - margin) (size / theta + offset)), because the cell or the group has grown or moved.
// Writes their indices to `stale` and returns how many.
std::uint32_t find_stale_groups(const Stream& stream, Octree& tree, const WalkOptions& options, float margin,
                                const DeviceBuffer<Group>& groups, const InteractionLists& lists,
                                DeviceBuffer<std::uint32_t>& stale);

// Sums over lists: sources (particles and cells) of each group times its members.
struct ListStatistics {
  std::uint64_t particle_pairs = 0;  // particle-particle interactions
  std::uint64_t cell_pairs = 0;      // particle-cell interactions
  std::uint64_t words = 0;
  std::uint64_t longest = 0;         // sources of one group
  std::uint64_t members = 0;         // particles in groups
};
ListStatistics list_statistics(const Stream& stream, const Octree& tree, const ListView& lists);

}  // namespace maki
