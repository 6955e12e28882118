#include "host/domain/group_costs.hpp"

#include "kernels/device/launch.cuh"

namespace maki {
namespace {

struct GroupCost {
  const std::uint32_t* cell_count;
  ListView lists;
  std::uint32_t cell_cost;
  std::uint32_t* cost;
  bool add;
  MAKI_HD void operator()(std::size_t i) const {
    const std::size_t g = lists.selected ? lists.selected[i] : i;
    const ListRange range = lists.ranges[g];
    const std::uint32_t* const leaves = lists.words + range.begin + range.cells;
    std::uint64_t sources = std::uint64_t{cell_cost} * range.cells;
    for (std::uint32_t k = 0; k < range.leaves; ++k) sources += cell_count[leaves[k]];
    const std::uint64_t product = sources * lists.groups[g].count + (add ? cost[g] : 0u);
    cost[g] = product < 0xffffffffu ? static_cast<std::uint32_t>(product) : 0xffffffffu;
  }
};

}  // namespace

void group_costs(const Stream& stream, const std::uint32_t* cell_count, const ListView& lists, std::uint32_t cell_cost,
                 std::uint32_t* cost, bool add) {
  launch(stream, "group_costs", lists.count, GroupCost{cell_count, lists, cell_cost, cost, add});
}

}  // namespace maki
