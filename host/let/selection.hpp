// Selection, on the device, of the cells and particles of a tree that the particles within given boxes need (Salmon &
// Warren 1994).
#pragma once

#include <cstdint>
#include <vector>

#include "host/let/blocks.hpp"
#include "kernels/tree/walk.hpp"

namespace maki {

// How a cell is judged for a box; the same decisions on every backend (kernels/tree/opening.hpp).
struct LetRule {
  OpeningRule opening;    // with the reach of the cutoff and a margin
  float distance_factor;  // of the distance at which a cell is sent undivided
  bool cutoff;
  std::uint32_t small_cell;
  bool whole = false;  // no cell is far enough: all particles within reach go
};

// Entries of all blocks, block after block in the order of targets and as blocks.hpp says; device memory.
struct LetSelection {
  DeviceBuffer<std::uint32_t> shapes{"let.shapes"};          // by cell of the blocks
  DeviceBuffer<std::uint32_t> multipoles{"let.multipoles"};  // which of the tree's cells
  DeviceBuffer<std::uint32_t> particles{"let.particles"};    // which particle
  DeviceBuffer<std::uint32_t> parents{"let.parents"};        // by particle (find_parents); for compression alone

  std::size_t bytes() const {
    return (shapes.capacity() + multipoles.capacity() + particles.capacity() + parents.capacity()) *
           sizeof(std::uint32_t);
  }
};

// For each target box:
//  - a cell whose box is beyond reach is left out, and so is one of which nothing is left;
//  - a cell of at most small_cell particles, or one without children that is near, goes as a leaf with its particles;
//  - a cell that is far enough from the box goes closed, unless the rule is whole;
//  - any other goes divided, with those of its children that are not left out.
// Returns what each target gets: nothing at all (0 cells) where the whole tree is beyond reach. A launch or two for
// each level, down and up, for all targets together; the host waits once a level. Scratch: 17 bytes for each cell that
// is looked at for a target. Throws Error where the entries for all targets together are 2^32 or more.
std::vector<BlockCounts> select_essential(const Stream& stream, Octree& tree, const LetRule& rule,
                                          const std::vector<WalkTarget>& targets, LetSelection& selection);

}  // namespace maki
