// The walk of one group on the CPU, compiled for two instruction sets. No std types cross this line.
#pragma once

#include <cstdint>

#include "kernels/tree/opening.hpp"

namespace maki {

struct Octree;
struct WalkOptions;

// An octree (CellGeometryView, TreeTopology) and the options of a walk, as plain pointers.
struct WalkTree {
  const std::uint32_t *comx, *comy, *comz, *x, *y, *z;
  const float *hx, *hy, *hz, *size, *offset, *error_length;
  const std::uint32_t* count;
  const std::uint32_t* first_child;
  const std::uint8_t* child_count;
  OpeningRule rule;
  bool cutoff;
  std::uint32_t small_cell;
};
WalkTree view_of(Octree& tree, const WalkOptions& options);

// Room for one group's words; `cells` and `leaves` hold `capacity` each.
struct WalkOutput {
  std::uint32_t* cells;
  std::uint32_t* leaves;
  std::uint32_t capacity;
  std::uint32_t cell_words, leaf_words;
};

// Returns false when the room did not suffice: the group is then walked again with more.
namespace scalar {
bool walk_group(const WalkTree& tree, const Group& group, WalkOutput& out);
}
namespace avx2 {
bool walk_group(const WalkTree& tree, const Group& group, WalkOutput& out);
}

}  // namespace maki
