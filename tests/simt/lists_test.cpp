// The GPU's passes over kept lists under the model of its execution, against the CPU's.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "kernels/tree/lists_cuda.cuh"
#include "tests/kernels/tree/sets.hpp"
#include "tests/kernels/tree/tree_set.hpp"

namespace maki {
namespace {

using testing::TreeSet;

void expect_same(const ListStatistics& a, const ListStatistics& b) {
  EXPECT_EQ(a.particle_pairs, b.particle_pairs);
  EXPECT_EQ(a.cell_pairs, b.cell_pairs);
  EXPECT_EQ(a.words, b.words);
  EXPECT_EQ(a.longest, b.longest);
  EXPECT_EQ(a.members, b.members);
}

struct Kept : TreeSet {
  WalkOptions options;
  InteractionLists lists;

  Kept(const std::vector<SourceParticle>& set, std::uint32_t group_size, float r_cut)
      : TreeSet(set, group_size, r_cut > 0 ? kPeriodicMinLevel : 0) {
    options.theta = 0.6f;
    options.r_cut = r_cut;
    walk_tree(stream, tree, options, all_groups(), lists);
  }
  // Moves a part of the particles, so that kept lists err.
  void move(float sides) {
    auto moved = particles.source.download(stream);
    const auto shift = static_cast<std::uint32_t>(sides * kSideInUnits);
    for (std::size_t i = 0; i < moved.size(); ++i)
      if (i % 7 == 0) moved[i].y += shift;
    particles.source.upload(stream, moved);
    sweep_octree(stream, particles.source.data(), tree);
    refit_groups(stream, particles.source.data(), groups);
  }
  std::vector<std::uint32_t> stale(float margin, bool on_gpu, StaleCells which = StaleCells::kAll) {
    DeviceBuffer<std::uint32_t> found("stale");
    const std::uint32_t n = on_gpu ? cuda::find_stale_groups(stream, tree, options, margin, groups, lists, found, which)
                                   : find_stale_groups(stream, tree, options, margin, groups, lists, found, which);
    EXPECT_EQ(n, found.size());
    return found.download(stream);
  }
};

// By closed cells, by the others, or by any.
TEST(ListsOnGpu, StaleByEachKindOfCell) {
  Kept k(testing::uniform_set(3000, 4), 32, 0.2f);
  std::vector<std::uint32_t> count = k.tree.count.download(k.stream);
  for (std::size_t c = 0; c < count.size(); c += 3) count[c] = kClosedCell;
  k.tree.count.upload(k.stream, count);
  k.move(0.02f);
  std::vector<std::vector<std::uint32_t>> found;
  for (const StaleCells which : {StaleCells::kAll, StaleCells::kDivisible, StaleCells::kClosed}) {
    found.push_back(k.stale(0.1f, true, which));
    EXPECT_EQ(found.back(), k.stale(0.1f, false, which));
    EXPECT_FALSE(found.back().empty());
  }
  std::vector<std::uint32_t> either;
  std::set_union(found[1].begin(), found[1].end(), found[2].begin(), found[2].end(), std::back_inserter(either));
  EXPECT_EQ(either, found[0]);
  EXPECT_NE(found[1], found[2]);
}

TEST(ListsOnGpu, StatisticsAreTheCpus) {
  for (const std::uint32_t size : {1u, 2u, 31u, 32u, 33u, 64u, 128u, 256u, 2048u})
    for (const float r_cut : {0.0f, 0.1f}) {
      SCOPED_TRACE(size);
      const std::size_t n = size < 31 ? 400 : 3000;
      Kept k(size % 2 ? testing::clustered_set(n, size) : testing::uniform_set(n, size, 0.25, 0.75), size, r_cut);
      expect_same(cuda::list_statistics(k.stream, k.tree, k.view(k.lists)),
                  list_statistics(k.stream, k.tree, k.view(k.lists)));
    }
}

TEST(ListsOnGpu, StatisticsOfSomeOfNoneAndOfEmptyLists) {
  Kept k(testing::plummer_set(2000, 3), 32, 0);
  DeviceBuffer<std::uint32_t> selected("selected");
  selected.upload(k.stream, std::vector<std::uint32_t>{5, 1, 40});
  ListView view = k.view(k.lists);
  view.selected = selected.data();
  view.count = 3;
  const ListStatistics some = cuda::list_statistics(k.stream, k.tree, view);
  expect_same(some, list_statistics(k.stream, k.tree, view));
  const auto groups = k.groups.download(k.stream);
  EXPECT_EQ(some.members, std::uint64_t{groups[5].count} + groups[1].count + groups[40].count);
  view.count = 0;
  expect_same(cuda::list_statistics(k.stream, k.tree, view), ListStatistics{});
  k.lists.ranges.fill_zero(k.stream);
  const ListStatistics empty = cuda::list_statistics(k.stream, k.tree, k.view(k.lists));
  EXPECT_EQ(empty.words + empty.longest + empty.particle_pairs + empty.cell_pairs, 0u);
  EXPECT_EQ(empty.members, 2000u);
}

TEST(ListsOnGpu, StaleGroupsAreTheCpus) {
  for (const std::uint32_t size : {1u, 2u, 32u, 33u, 64u, 256u, 2048u})
    for (const float r_cut : {0.0f, 0.1f}) {
      SCOPED_TRACE(size);
      Kept k(testing::clustered_set(size < 32 ? 400 : 2500, size), size, r_cut);
      EXPECT_TRUE(k.stale(0.1f, true).empty());  // fresh
      for (const float sides : {0.0005f, 0.002f, 0.02f}) {
        k.move(sides);
        EXPECT_EQ(k.stale(0.1f, true), k.stale(0.1f, false));
        EXPECT_EQ(k.stale(0.0f, true), k.stale(0.0f, false));
      }
      if (size < 256) {
        EXPECT_FALSE(k.stale(0.0f, true).empty());
      }
    }
  Kept one(testing::uniform_set(1, 3), 8, 0);
  EXPECT_TRUE(one.stale(0.1f, true).empty());
}

TEST(ListsOnGpu, TwentyOrdersOfThreadsGiveTheSame) {
  Kept k(testing::clustered_set(1500, 77), 32, 0);
  k.move(0.003f);
  const auto stale = k.stale(0.1f, false);
  const ListStatistics statistics = list_statistics(k.stream, k.tree, k.view(k.lists));
  EXPECT_FALSE(stale.empty());
  EXPECT_LT(stale.size(), k.groups.size());
  simt::for_seeds(20, [&](std::uint64_t) {
    EXPECT_EQ(k.stale(0.1f, true), stale);
    expect_same(cuda::list_statistics(k.stream, k.tree, k.view(k.lists)), statistics);
  });
}

TEST(ListsOnGpu, StatisticsCostOneSmallReadBack) {
  Kept k(testing::plummer_set(1000, 5), 32, 0);
  reset_transfer_counters();
  cuda::list_statistics(k.stream, k.tree, k.view(k.lists));
  EXPECT_LE(transfer_counters().to_host, 64u);
  EXPECT_EQ(transfer_counters().to_device, 0u);
}

}  // namespace
}  // namespace maki
