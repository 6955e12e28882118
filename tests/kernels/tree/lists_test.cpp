// Passes over kept lists against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "tests/kernels/tree/tree_set.hpp"
#include "tests/on_device.hpp"

namespace maki {
namespace {

using testing::TreeSet;

struct Kept : TreeSet {
  WalkOptions options;
  InteractionLists lists;

  Kept(const std::vector<SourceParticle>& set, std::uint32_t group_size, float r_cut)
      : TreeSet(set, group_size, r_cut > 0 ? kPeriodicMinLevel : 0), options{.theta = 0.6f, .r_cut = r_cut} {
    walk_tree(stream, tree, options, all_groups(), lists);
  }
  // Moves a part of the particles, so that kept lists err.
  void move(float sides) {
    auto moved = particles.source.download(stream);
    const auto shift = static_cast<std::uint32_t>(sides * kSideInUnits);
    for (std::size_t i = 0; i < moved.size(); ++i)
      if (i % 7 == 0) moved[i].y += shift;
    move_to(moved);
  }
  std::vector<std::uint32_t> stale(float margin, StaleCells which = StaleCells::kAll) {
    DeviceBuffer<std::uint32_t> found("stale");
    const std::uint32_t n = find_stale_groups(stream, tree, {options.rule(), margin, which}, view(lists), found);
    EXPECT_EQ(n, found.size());
    return found.download(stream);
  }
  ListStatistics statistics() { return list_statistics(stream, tree, view(lists)); }

  // By the book.
  std::vector<std::uint32_t> stale_by_loop(float margin, StaleCells which = StaleCells::kAll) {
    CellGeometryView g = tree.geometry.view();
    std::vector<std::vector<std::uint32_t>> places(3, std::vector<std::uint32_t>(tree.cells));
    std::vector<std::vector<float>> lengths(2, std::vector<float>(tree.cells));
    const auto copy = [&](auto*& from, auto& to) {
      copy_to_host(stream, to.data(), from, tree.cells * sizeof(*from));
      from = to.data();
    };
    copy(g.comx, places[0]), copy(g.comy, places[1]), copy(g.comz, places[2]);
    copy(g.size, lengths[0]), copy(g.offset, lengths[1]);
    const auto counts = tree.count.download(stream);
    const auto all = testing::words_of(stream, lists);
    const auto boxes = groups.download(stream);
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < boxes.size(); ++i)
      if (std::any_of(all[i].cells.begin(), all[i].cells.end(), [&](std::uint32_t c) {
            const StaleCriterion criterion{options.rule(), margin, which};
            return criterion.looks_at(counts[c]) && criterion.has_come_near(walk_target(boxes[i]), g, c);
          }))
        found.push_back(i);
    return found;
  }
  ListStatistics statistics_by_loop(const std::vector<std::uint32_t>& of) {
    const auto counts = tree.count.download(stream);
    const auto all = testing::words_of(stream, lists);
    const auto boxes = groups.download(stream);
    const auto ranges = lists.ranges.download(stream);
    ListStatistics sum;
    for (const std::uint32_t i : of) {
      std::uint64_t particles_of_leaves = 0;
      for (const std::uint32_t word : all[i].leaves) particles_of_leaves += counts[word];
      sum.add(particles_of_leaves, ranges[i], boxes[i].count);
    }
    return sum;
  }
  ListStatistics statistics_by_loop() {
    std::vector<std::uint32_t> all(groups.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    return statistics_by_loop(all);
  }
};

// By closed cells, by the others, or by any.
TEST(ListKernels, StaleByEachKindOfCell) {
  Kept k(testing::uniform_set(3000, 4), 32, 0.2f);
  std::vector<std::uint32_t> count = k.tree.count.download(k.stream);
  for (std::size_t c = 0; c < count.size(); c += 3) count[c] = kClosedCell;
  k.tree.count.upload(k.stream, count);
  k.move(0.02f);
  std::vector<std::vector<std::uint32_t>> found;
  for (const StaleCells which : {StaleCells::kAll, StaleCells::kDivisible, StaleCells::kClosed}) {
    found.push_back(k.stale(0.1f, which));
    EXPECT_EQ(found.back(), k.stale_by_loop(0.1f, which));
    EXPECT_FALSE(found.back().empty());
  }
  std::vector<std::uint32_t> either;
  std::set_union(found[1].begin(), found[1].end(), found[2].begin(), found[2].end(), std::back_inserter(either));
  EXPECT_EQ(either, found[0]);
  EXPECT_NE(found[1], found[2]);
}

TEST(ListKernels, StatisticsAreThoseOfAPlainLoop) {
  for (const std::uint32_t size : {1u, 2u, 31u, 32u, 33u, 64u, 128u, 256u, 2048u})
    for (const float r_cut : {0.0f, 0.1f}) {
      SCOPED_TRACE(size);
      const std::size_t n = size < 31 ? 400 : 2500;
      Kept k(size % 2 ? testing::clustered_set(n, size) : testing::uniform_set(n, size, 0.25, 0.75), size, r_cut);
      for (int order = 0; order < 3; ++order) EXPECT_EQ(k.statistics(), k.statistics_by_loop());
    }
}

TEST(ListKernels, StatisticsOfSomeOfNoneAndOfEmptyLists) {
  Kept k(testing::plummer_set(2000, 3), 32, 0);
  const std::vector<std::uint32_t> some{5, 1, 40};
  test::OnDevice selected(some);
  ListView view = k.view(k.lists);
  view.selected = selected.data();
  view.count = 3;
  EXPECT_EQ(list_statistics(k.stream, k.tree, view), k.statistics_by_loop(some));
  view.count = 0;
  EXPECT_EQ(list_statistics(k.stream, k.tree, view), ListStatistics{});
  k.lists.ranges.fill_zero(k.stream);
  const ListStatistics empty = k.statistics();
  EXPECT_EQ(empty.words + empty.longest + empty.particle_pairs + empty.cell_pairs, 0u);
  EXPECT_EQ(empty.members, 2000u);
}

TEST(ListKernels, StaleGroupsAreThoseOfAPlainLoop) {
  for (const std::uint32_t size : {1u, 2u, 32u, 33u, 64u, 256u, 2048u})
    for (const float r_cut : {0.0f, 0.1f}) {
      SCOPED_TRACE(size);
      Kept k(testing::clustered_set(size < 32 ? 400 : 2500, size), size, r_cut);
      EXPECT_TRUE(k.stale(0.1f).empty());  // fresh
      for (const float sides : {0.0005f, 0.002f, 0.02f}) {
        k.move(sides);
        EXPECT_EQ(k.stale(0.1f), k.stale_by_loop(0.1f));
        EXPECT_EQ(k.stale(0.0f), k.stale_by_loop(0.0f));
      }
      if (size < 256) {
        EXPECT_FALSE(k.stale(0.0f).empty());
      }
    }
  Kept one(testing::uniform_set(1, 3), 8, 0);
  EXPECT_TRUE(one.stale(0.1f).empty());
}

TEST(ListKernels, StatisticsCostOneSmallReadBack) {
  Kept k(testing::plummer_set(1000, 5), 32, 0);
  reset_transfer_counters();
  k.statistics();
  EXPECT_LE(transfer_counters().to_host, 64u);
  EXPECT_EQ(transfer_counters().to_device, 0u);
}

}  // namespace
}  // namespace maki
