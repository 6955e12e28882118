// Prefix sums over the shapes of blocks' cells (blocks.hpp).
#pragma once

#include "host/let/blocks.hpp"

namespace maki {

// By cell of the blocks, n + 1 entries each: the numbers of children, multipoles and leaf particles of the cells before
// it.
struct ShapeSums {
  DeviceBuffer<std::uint32_t> children{"let.scratch"}, multipoles{"let.scratch"};
  DeviceBuffer<std::uint64_t> particles{"let.scratch"};
};
ShapeSums sum_shapes(const Stream& stream, const DeviceBuffer<std::uint32_t>& shapes);

// By particle: the parent of its leaf, as an index of the blocks' multipoles; not set where the root is the leaf.
void find_parents(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::uint32_t>& shapes,
                  const ShapeSums& sums, DeviceBuffer<std::uint32_t>& parents);

}  // namespace maki
