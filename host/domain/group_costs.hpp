// What groups cost, by their interaction lists.
#pragma once

#include <cstdint>

#include "kernels/device/stream.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

// cost[g] of each group g that `lists` names: its members times the particles of its leaves and `cell_cost` times its
// cells; with cell_cost = 1 its interactions. `add`: adds to what `cost` holds, for lists over another tree. Costs
// saturate at 2^32 - 1. `cell_count` as in SourceView.
void group_costs(const Stream& stream, const std::uint32_t* cell_count, const ListView& lists, std::uint32_t cell_cost,
                 std::uint32_t* cost, bool add = false);

}  // namespace maki
