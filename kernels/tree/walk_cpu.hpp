// The walk of one group on the CPU, compiled for two instruction sets. No std types cross this line.
#pragma once

#include <cstdint>

#include "kernels/tree/opening.hpp"

namespace maki {

struct Octree;
struct WalkOptions;

// An octree and the options of a walk.
struct WalkTree : TreeTopology {
  CellGeometryView g;
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
