#include "host/domain/cost_sums.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/tree/walk.hpp"
#include "tests/kernels/tree/sets.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

TEST(GroupCosts, AreTheInteractionsOfTheLists) {
  testing::TreeSet set(testing::clustered_set(5000, 2), 64, 0);
  InteractionLists lists;
  walk_tree(set.stream, set.tree, {}, set.all_groups(), lists);
  const auto count = static_cast<std::uint32_t>(set.groups.size());
  const ListView view{set.groups.data(), lists.ranges.data(), lists.words.data(), nullptr, count};
  const ListStatistics expected = list_statistics(set.stream, set.tree, view);
  DeviceBuffer<std::uint32_t> cost("test.cost", count);
  for (const std::uint32_t cell_cost : {1u, 4u}) {
    group_costs(set.stream, set.tree.count.data(), view, cell_cost, cost.data());
    const auto costs = cost.download(set.stream);
    EXPECT_EQ(std::accumulate(costs.begin(), costs.end(), std::uint64_t{0}),
              expected.particle_pairs + cell_cost * expected.cell_pairs);
  }
}

TEST(GroupCosts, OfSelectedGroupsLeaveTheOthersAndDoNotOverflow) {
  const Stream& stream = test::test_stream();
  DeviceBuffer<Group> groups("test.groups");
  DeviceBuffer<ListRange> ranges("test.ranges");
  DeviceBuffer<std::uint32_t> words("test.words"), selected("test.selected"), cells("test.cells"), cost("test.cost");
  groups.upload(stream, {Group{0, 3, 0, 0, 0, 0, 0, 0}, Group{3, 5, 0, 0, 0, 0, 0, 0}, Group{8, 4, 0, 0, 0, 0, 0, 0}});
  ranges.upload(stream, {{0, 1, 1}, {2, 0, 1}, {3, 1, 2}});
  words.upload(stream, {0, 1, 2, 0, 1, 3});
  cells.upload(stream, {9, 10, 20, 2000000000});
  selected.upload(stream, {0, 2});
  cost.upload(stream, {7, 7, 7});
  group_costs(stream, cells.data(), {groups.data(), ranges.data(), words.data(), selected.data(), 2}, 1, cost.data());
  EXPECT_EQ(cost.download(stream), (std::vector<std::uint32_t>{3 * 11, 7, 0xffffffffu}));
}

}  // namespace
}  // namespace maki
