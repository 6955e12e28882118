// What the shapes of blocks' cells (blocks.hpp) leave to sums.
#pragma once

#include "host/let/blocks.hpp"

namespace maki {

// Of n + 1 entries each, by cell of the blocks: how many cells, multipoles and particles those before it have below
// them or are.
struct ShapeSums {
  DeviceBuffer<std::uint32_t> children{"let.scratch"}, multipoles{"let.scratch"};
  DeviceBuffer<std::uint64_t> particles{"let.scratch"};
};
ShapeSums sum_shapes(const Stream& stream, const DeviceBuffer<std::uint32_t>& shapes);

// For each particle, which of the blocks' multipoles is the parent of its leaf; not set where the root is the leaf.
void find_parents(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::uint32_t>& shapes,
                  const ShapeSums& sums, DeviceBuffer<std::uint32_t>& parents);

}  // namespace maki
