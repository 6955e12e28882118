// A table of the arrays on the device at the peak of its memory use.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/device/memory.hpp"

namespace maki {

// Arrays by what they belong to: the name up to the dot ("tree" of "tree.moments"). Largest first.
std::vector<PoolUse> families(const std::vector<PoolUse>& arrays);

// One aligned line for each entry, "name  MB  bytes a particle", and their sum.
std::string memory_table(const std::vector<PoolUse>& arrays, std::size_t particles);

}  // namespace maki
