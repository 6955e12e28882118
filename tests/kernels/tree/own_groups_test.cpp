#include "kernels/tree/octree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/kernels/tree/tree_set.hpp"

namespace maki {
namespace {

bool same(const Group& a, const Group& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void expect_own_groups(const std::function<bool(std::uint32_t)>& is_own) {
  constexpr std::uint32_t kParticles = 3000;
  testing::TreeSet t(testing::clustered_set(kParticles, 2), 16, 3);
  const std::vector<Group> all = t.groups.download(t.stream);
  std::vector<std::uint32_t> own_before{0};
  for (std::uint32_t i = 0; i < kParticles; ++i) own_before.push_back(own_before.back() + (is_own(i) ? 1 : 0));
  DeviceBuffer<std::uint32_t> before("before");
  before.upload(t.stream, own_before);
  DeviceBuffer<Group> own("own");
  keep_own_groups(t.stream, before, t.groups, own);

  const std::vector<Group> kept = t.groups.download(t.stream), members = own.download(t.stream);
  ASSERT_EQ(members.size(), kept.size());
  std::size_t next = 0;
  std::uint32_t seen = 0;
  for (const Group& group : all) {
    std::uint32_t own_here = 0;
    for (std::uint32_t i = group.first; i < group.first + group.count; ++i) own_here += is_own(i) ? 1 : 0;
    if (own_here == 0) continue;
    ASSERT_LT(next, kept.size());
    EXPECT_TRUE(same(kept[next], group)) << "group " << next << " as it was, with its box";
    EXPECT_EQ(members[next].first, seen);
    EXPECT_EQ(members[next].count, own_here);
    seen += own_here;
    ++next;
  }
  EXPECT_EQ(next, kept.size());
  EXPECT_EQ(seen, own_before.back());
}

// Cells and groups that ghosts act on, and all others; and sweeps of the two kinds of cells one after the other.
TEST(OwnGroups, InnerOnesNeedNoGhosts) {
  constexpr std::uint32_t kParticles = 4000;
  testing::TreeSet t(testing::uniform_set(kParticles, 3), 32, 3);
  const auto is_own = [](std::uint32_t i) { return i < 2500 && i != 700; };
  std::vector<std::uint32_t> own_before{0};
  for (std::uint32_t i = 0; i < kParticles; ++i) own_before.push_back(own_before.back() + (is_own(i) ? 1 : 0));
  DeviceBuffer<std::uint32_t> before("before"), inner("inner"), outer("outer");
  before.upload(t.stream, own_before);
  DeviceBuffer<Group> own("own");
  DeviceBuffer<std::uint8_t> has_ghosts("ghosts");
  mark_ghost_cells(t.stream, before, t.tree, has_ghosts);
  keep_own_groups(t.stream, before, t.groups, own);
  WalkOptions walk;
  walk.r_cut = 0.1f;
  InteractionLists lists;
  walk_tree(t.stream, t.tree, walk, t.all_groups(), lists);
  split_groups(t.stream, t.view(lists), own, has_ghosts, inner, outer);

  const auto first = t.tree.first.download(t.stream), count = t.tree.count.download(t.stream);
  const auto holds_ghosts = [&](std::uint32_t begin, std::uint32_t n) {
    for (std::uint32_t i = begin; i < begin + n; ++i)
      if (!is_own(i)) return true;
    return false;
  };
  const auto marks = has_ghosts.download(t.stream);
  for (std::uint32_t c = 0; c < t.tree.cells; ++c) EXPECT_EQ(marks[c] != 0, holds_ghosts(first[c], count[c])) << c;
  std::vector<std::uint32_t> expected_inner, expected_outer;
  const auto words = testing::words_of(t.stream, lists);
  const auto groups = t.groups.download(t.stream);
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    bool needs = holds_ghosts(groups[g].first, groups[g].count);
    for (const auto& cells : {words[g].cells, words[g].leaves})
      for (const std::uint32_t c : cells) needs = needs || holds_ghosts(first[c], count[c]);
    (needs ? expected_outer : expected_inner).push_back(g);
  }
  EXPECT_EQ(inner.download(t.stream), expected_inner);
  EXPECT_EQ(outer.download(t.stream), expected_outer);
  EXPECT_GT(expected_inner.size(), 0u);
  EXPECT_GT(expected_outer.size(), 0u);
}

TEST(OwnGroups, SweepsInTwoPartsAreOneSweep) {
  testing::TreeSet one(testing::clustered_set(3000, 4), 32, 3), two(testing::clustered_set(3000, 4), 32, 3);
  std::vector<std::uint32_t> own_before;
  for (std::uint32_t i = 0; i <= 3000; ++i) own_before.push_back(std::min(i, 1700u));
  DeviceBuffer<std::uint32_t> before("before");
  before.upload(two.stream, own_before);
  DeviceBuffer<std::uint8_t> has_ghosts("ghosts");
  mark_ghost_cells(two.stream, before, two.tree, has_ghosts);
  for (testing::TreeSet* t : {&one, &two}) {
    auto moved = t->particles.source.download(t->stream);
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i].x += static_cast<std::uint32_t>(i) << 12;
    t->particles.source.upload(t->stream, moved);
  }
  sweep_octree(one.stream, one.particles.source.data(), one.tree);
  sweep_part(two.stream, two.particles.source.data(), two.tree, has_ghosts.data(), 0);
  sweep_part(two.stream, two.particles.source.data(), two.tree, has_ghosts.data(), 1);
  const auto a = one.tree.moments.download(one.stream), b = two.tree.moments.download(two.stream);
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]), 0);
  auto size = one.tree.geometry.size.download(one.stream), size_in_two = two.tree.geometry.size.download(two.stream);
  size.resize(one.tree.cells);  // without what the array is padded with
  size_in_two.resize(one.tree.cells);
  EXPECT_EQ(size_in_two, size);
}

TEST(OwnGroups, ThoseWithOwnParticlesStayInOrder) {
  expect_own_groups([](std::uint32_t i) { return i % 97 == 5; });
  expect_own_groups([](std::uint32_t i) { return i / 40 % 3 == 1; });
  expect_own_groups([](std::uint32_t i) { return i == 2999; });
}

TEST(OwnGroups, AllOrNone) {
  expect_own_groups([](std::uint32_t) { return true; });
  expect_own_groups([](std::uint32_t) { return false; });
}

}  // namespace
}  // namespace maki
