#include "host/domain/sampling.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/tree/walk.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/on_device.hpp"

namespace maki {
namespace {

using test::OnDevice;

// Particle i at x = i, y = 2 i, z = 3 i.
OnDevice<> row(std::uint32_t n) {
  std::vector<SourceParticle> host(n);
  for (std::uint32_t i = 0; i < n; ++i) host[i] = {i, 2 * i, 3 * i, 1};
  return OnDevice(host);
}

std::vector<std::uint32_t> found(const Stream& stream, const CostSums& sums, std::uint32_t particles) {
  std::vector<std::uint64_t> at(sums.total());
  for (std::size_t k = 0; k < at.size(); ++k) at[k] = k;
  std::vector<std::uint32_t> indices;
  for (const SamplePoint& p : sums.particles_at(stream, row(particles).data(), at)) {
    EXPECT_EQ(p[1], 2 * p[0]);
    EXPECT_EQ(p[2], 3 * p[0]);
    indices.push_back(p[0]);
  }
  return indices;
}

TEST(CostSums, FindTheParticleOfEachUnitOfCost) {
  const Stream& stream = test::test_stream();
  const OnDevice<std::uint32_t> cost({2, 0, 0, 3, 1});
  const CostSums sums(stream, {.cost = cost.data(), .count = 5}, 5);
  EXPECT_EQ(sums.total(), 6u);
  EXPECT_EQ(found(stream, sums, 5), (std::vector<std::uint32_t>{0, 0, 3, 3, 3, 4}));
}

TEST(CostSums, ShareAGroupsCostAmongItsParticles) {
  const Stream& stream = test::test_stream();
  OnDevice<Group> groups({Group{0, 2, 0, 0, 0, 0, 0, 0}, Group{2, 1, 0, 0, 0, 0, 0, 0}, Group{3, 3, 0, 0, 0, 0, 0, 0}});
  const OnDevice<std::uint32_t> cost({4, 0, 3});
  const CostSums sums(stream, {.cost = cost.data(), .groups = groups.data(), .count = 3}, 6);
  EXPECT_EQ(found(stream, sums, 6), (std::vector<std::uint32_t>{0, 0, 1, 1, 3, 4, 5}));
  const CostSums with_each(stream, {.cost = cost.data(), .groups = groups.data(), .count = 3, .each = 2}, 6);
  EXPECT_EQ(with_each.total(), 7u + 12u);
}

TEST(CostSums, CountParticlesWhereNoCostIsGiven) {
  const Stream& stream = test::test_stream();
  EXPECT_EQ(found(stream, CostSums(stream, {}, 3), 3), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(CostSums(stream, {}, 0).total(), 0u);
}

TEST(CostSums, GoBeyond32Bits) {
  const Stream& stream = test::test_stream();
  const OnDevice cost(std::vector<std::uint32_t>(4, 4000000000u));
  const CostSums sums(stream, {.cost = cost.data(), .count = 4}, 4);
  EXPECT_EQ(sums.total(), 16000000000u);
  const auto source = row(4);
  const auto points = sums.particles_at(stream, source.data(), {3999999999u, 4000000000u, 15999999999u});
  EXPECT_EQ(points[0][0], 0u);
  EXPECT_EQ(points[1][0], 1u);
  EXPECT_EQ(points[2][0], 3u);
}

TEST(SampleCost, StandsInItsStratum) {
  for (const std::uint64_t total : {std::uint64_t{7}, std::uint64_t{1000}, ~std::uint64_t{0} / 3}) {
    double mean = 0;
    for (std::uint64_t k = 0; k < 7; ++k) {
      const auto begin = static_cast<std::uint64_t>(static_cast<unsigned __int128>(k) * total / 7);
      const auto end = static_cast<std::uint64_t>(static_cast<unsigned __int128>(k + 1) * total / 7);
      for (std::uint64_t step = 0; step < 200; ++step) {
        const std::uint64_t at = sample_cost(k, 7, total, step);
        EXPECT_LE(begin, at);
        EXPECT_LT(at, end);
        mean += (static_cast<double>(at - begin) + 0.5) / static_cast<double>(end - begin) / 1400;
      }
    }
    EXPECT_NEAR(mean, 0.5, 0.03);  // 4 sigma of 1400 uniform numbers
  }
  EXPECT_NE(sample_cost(3, 7, 1000000, 1), sample_cost(3, 7, 1000000, 2));
}

TEST(GroupCosts, AreTheInteractionsOfTheLists) {
  testing::TreeSet set(testing::clustered_set(5000, 2), 64, 0);
  InteractionLists lists;
  walk_tree(set.stream, set.tree, {}, set.all_groups(), lists);
  const ListView view = set.view(lists);
  const ListStatistics expected = list_statistics(set.stream, set.tree, view);
  DeviceBuffer<std::uint32_t> cost("test.cost", set.group_count());
  for (const std::uint32_t cell_cost : {1u, 4u}) {
    group_costs(set.stream, set.tree.count.data(), view, cell_cost, cost.data());
    const auto costs = cost.download(set.stream);
    EXPECT_EQ(std::accumulate(costs.begin(), costs.end(), std::uint64_t{0}),
              expected.particle_pairs + cell_cost * expected.cell_pairs);
  }
}

TEST(GroupCosts, OfSelectedGroupsLeaveTheOthersAndDoNotOverflow) {
  const Stream& stream = test::test_stream();
  OnDevice<Group> groups({Group{0, 3, 0, 0, 0, 0, 0, 0}, Group{3, 5, 0, 0, 0, 0, 0, 0}, Group{8, 4, 0, 0, 0, 0, 0, 0}});
  OnDevice<ListRange> ranges({{0, 1, 1}, {2, 0, 1}, {3, 1, 2}});
  OnDevice<std::uint32_t> words({0, 1, 2, 0, 1, 3}), cells({9, 10, 20, 2000000000}), selected({0, 2}), cost({7, 7, 7});
  group_costs(stream, cells.data(), {groups.data(), ranges.data(), words.data(), selected.data(), 2}, 1, cost.data());
  EXPECT_EQ(cost.download(stream), (std::vector<std::uint32_t>{3 * 11, 7, 0xffffffffu}));
}

}  // namespace
}  // namespace maki
