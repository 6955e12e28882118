#include "kernels/tree/octree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>
#include <vector>

#include "kernels/particles/particles.hpp"
#include "kernels/tree/walk.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/on_device.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

struct Built : testing::TreeSet {
  std::vector<SourceParticle> sorted = particles.source.download(stream);
  Built(const std::vector<SourceParticle>& set, std::uint32_t leaf_size, int min_level, std::uint32_t group_size = 64)
      : TreeSet(set, group_size, min_level, leaf_size) {}
};

TEST(Morton, BitsInterleaveAndComeBack) {
  for (const std::uint64_t v : {0ull, 1ull, 0x155555ull, 0x1fffffull, 0x0f0f0ull})
    EXPECT_EQ(gather_bits(spread_bits(v)), v);
  EXPECT_EQ(morton_key(0x80000000u, 0, 0), 1ull << 62);
  EXPECT_EQ(morton_key(0, 0x80000000u, 0), 1ull << 61);
  EXPECT_EQ(morton_key(0, 0, 1u << 11), 1ull);
  EXPECT_EQ(morton_key(~0u, ~0u, ~0u), (1ull << 63) - 1);
}

TEST(Morton, SortKeepsEveryParticleWhole) {
  const Stream& stream = test::test_stream();
  const auto set = testing::uniform_set(5000, 3);
  std::vector<std::uint64_t> ids(set.size());
  std::iota(ids.begin(), ids.end(), 0);
  Particles particles;
  MortonSorter sorter;
  testing::upload_at_rest(stream, set, particles);
  particles.id.upload(stream, ids);
  sorter.sort(stream, particles, nullptr);
  ids = particles.id.download(stream);
  const auto sorted = particles.source.download(stream);
  const auto keys = sorter.keys().download(stream);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  for (std::size_t i = 0; i < set.size(); ++i) {
    EXPECT_EQ(sorted[i].x, set[ids[i]].x);
    EXPECT_EQ(sorted[i].mass, set[ids[i]].mass);
  }
}

TEST(Octree, MomentsAndBoxesMatchDirectSums) {
  Built b(testing::clustered_set(4000, 9), 16, 0);
  const auto first = b.tree.first.download(b.stream), count = b.tree.count.download(b.stream);
  const auto moments = b.tree.moments.download(b.stream);
  const auto hx = b.tree.geometry.hx.download(b.stream);
  const auto x = b.tree.geometry.x.download(b.stream);
  const auto size = b.tree.geometry.size.download(b.stream);
  for (std::uint32_t c = 0; c < b.tree.cells; ++c) {
    double m = 0, cx = 0, cy = 0;
    for (std::uint32_t p = first[c]; p < first[c] + count[c]; ++p) {
      m += b.sorted[p].mass;
      cx += b.sorted[p].mass * (b.sorted[p].x / kSideToUnits);
      cy += b.sorted[p].mass * (b.sorted[p].y / kSideToUnits);
    }
    cx /= m;
    cy /= m;
    double qxx = 0, qxy = 0, trace = 0;
    for (std::uint32_t p = first[c]; p < first[c] + count[c]; ++p) {
      const double dx = b.sorted[p].x / kSideToUnits - cx, dy = b.sorted[p].y / kSideToUnits - cy;
      qxx += b.sorted[p].mass * dx * dx;
      qxy += b.sorted[p].mass * dx * dy;
      trace += b.sorted[p].mass * size[c] * size[c];
      EXPECT_LE(std::abs(separation(b.sorted[p].x, x[c])), hx[c] + 1e-9f);
    }
    EXPECT_NEAR(moments[c].mass, m, 1e-6 * m);
    EXPECT_NEAR(moments[c].x / kSideToUnits, cx,
                3e-7 * size[c] + 22 * 0.5 / kSideToUnits);  // float sums; half a unit for each level
    EXPECT_NEAR(moments[c].qxx, qxx, 2e-6 * trace + 1e-20);
    EXPECT_NEAR(moments[c].qxy, qxy, 2e-6 * trace + 1e-20);
  }
}

TEST(Octree, SweepFollowsMovedParticlesAcrossTheBoxEdge) {
  auto set = testing::uniform_set(2000, 11);
  Built b(set, 16, 3);
  auto moved = b.sorted;
  for (auto& p : moved) p.x += 0x02000000u;  // 1/128 of the side, some wrap
  b.particles.source.upload(b.stream, moved);
  const auto before = b.tree.moments.download(b.stream);
  sweep_octree(b.stream, b.particles.source.data(), b.tree);
  const auto after = b.tree.moments.download(b.stream);
  // Cells from level 2 on are smaller than half the box: their centres of mass move by the shift.
  for (std::uint32_t c = b.tree.level_begin[2]; c < b.tree.cells; ++c) {
    EXPECT_NEAR(signed_difference(after[c].x, before[c].x), 0x02000000, 2);
    EXPECT_NEAR(after[c].qxx, before[c].qxx, 1e-5 * std::abs(before[c].qxx) + 1e-20);
  }
}

// A rank's slab that begins at the edge of the box: extents are rounded up on each level, and still end there.
TEST(Octree, BoxesAtTheEdgeOfTheBoxDoNotReachRoundIt) {
  auto set = testing::uniform_set(5000, 12);
  for (SourceParticle& p : set) p.x /= 2;
  for (std::size_t i = 0; i < 40; ++i) set[i].x = static_cast<std::uint32_t>(i / 2);
  Built low(set, 4, kPeriodicMinLevel);
  EXPECT_NEAR(low.tree.geometry.hx.download(low.stream)[0], 0.25, 1e-3);
  EXPECT_GT(low.tree.geometry.hy.download(low.stream)[0], 0.49);
  for (SourceParticle& p : set) p.x = ~p.x;
  Built high(set, 4, kPeriodicMinLevel);
  EXPECT_NEAR(high.tree.geometry.hx.download(high.stream)[0], 0.25, 1e-3);
}

TEST(Groups, BoxesHoldTheirParticles) {
  for (const std::uint32_t n_crit : {1u, 16u, 64u, 128u})
    for (const int min_level : {0, 3})
      for (const auto& set :
           {testing::uniform_set(3000, 1), testing::clustered_set(4000, 2), testing::uniform_set(1, 1)}) {
        const Built b(set, 16, min_level, n_crit);
        for (const Group& g : b.groups.download(b.stream)) {
          EXPECT_TRUE(min_level == 0 || std::max({g.hx, g.hy, g.hz}) <= 0.126f);
          for (std::uint32_t p = g.first; p < g.first + g.count; ++p) {
            EXPECT_LE(std::abs(separation(b.sorted[p].x, g.x)), g.hx);
            EXPECT_LE(std::abs(separation(b.sorted[p].z, g.z)), g.hz);
          }
        }
      }
}

// Cells above the level of whole cells: cubes, never multipoles.

struct Boxes {
  std::vector<std::uint32_t> x, y, z;
  std::vector<float> hx, hy, hz, size;
  explicit Boxes(testing::TreeSet& set)
      : x(set.tree.geometry.x.download(set.stream)), y(set.tree.geometry.y.download(set.stream)),
        z(set.tree.geometry.z.download(set.stream)), hx(set.tree.geometry.hx.download(set.stream)),
        hy(set.tree.geometry.hy.download(set.stream)), hz(set.tree.geometry.hz.download(set.stream)),
        size(set.tree.geometry.size.download(set.stream)) {}
};

// In sides, within the box as it is (cells do not reach round its edge).
struct Interval {
  double low, high;
  Interval(std::uint32_t centre, float half)
      : low(centre / kSideToUnits - static_cast<double>(half)),
        high(centre / kSideToUnits + static_cast<double>(half)) {}
  bool holds(const Interval& other) const { return low <= other.low && other.high <= high; }
};

void expect_holds(const Boxes& b, std::uint32_t cell, std::uint32_t child) {
  EXPECT_TRUE(Interval(b.x[cell], b.hx[cell]).holds({b.x[child], b.hx[child]})) << cell << " " << child;
  EXPECT_TRUE(Interval(b.y[cell], b.hy[cell]).holds({b.y[child], b.hy[child]})) << cell << " " << child;
  EXPECT_TRUE(Interval(b.z[cell], b.hz[cell]).holds({b.z[child], b.hz[child]})) << cell << " " << child;
}

std::vector<std::vector<SourceParticle>> sets() {
  auto at_edges = testing::uniform_set(1500, 5);
  for (std::size_t i = 0; i < at_edges.size(); i += 2) at_edges[i].x = i % 4 == 0 ? 0 : ~0u;
  return {testing::uniform_set(3000, 1), testing::clustered_set(3000, 2), at_edges, testing::uniform_set(1, 3)};
}

TEST(CoarseCells, AreTheirCubesAndHoldTheBoxesOfTheirChildren) {
  for (const auto& set : sets())
    for (const int level : {1, 3, 5, 40}) {
      testing::TreeSet t(set, 64, 3);
      const Boxes before(t);
      open_coarse_cells(t.stream, level, t.tree);
      const Boxes after(t);
      const auto first = t.tree.first.download(t.stream), first_child = t.tree.first_child.download(t.stream);
      const auto child_count = t.tree.child_count.download(t.stream);
      const auto particles = t.particles.source.download(t.stream);
      for (int l = 0; l + 1 < static_cast<int>(t.tree.level_begin.size()); ++l)
        for (std::uint32_t c = t.tree.level_begin[static_cast<std::size_t>(l)];
             c < t.tree.level_begin[static_cast<std::size_t>(l) + 1]; ++c) {
          if (l >= level) {
            EXPECT_EQ(std::tie(after.x[c], after.hx[c], after.size[c]),
                      std::tie(before.x[c], before.hx[c], before.size[c]));
            continue;
          }
          const double side = std::ldexp(1.0, -l);
          const double cube = std::floor(particles[first[c]].y / kSideToUnits / side) * side;
          EXPECT_EQ(after.y[c] / kSideToUnits, cube + side / 2) << "level " << l;
          EXPECT_NEAR(after.hy[c], side / 2, 1e-4 * side);
          expect_holds(after, c, c);
          for (std::uint32_t k = 0; k < child_count[c]; ++k) expect_holds(after, c, first_child[c] + k);
        }
    }
}

TEST(CoarseCells, NoWalkTakesThemForMultipoles) {
  const int level = 4;
  for (const float r_cut : {0.0f, 0.11f}) {
    const WalkOptions walk{.theta = 1.5f, .r_cut = r_cut};
    testing::TreeSet t(testing::uniform_set(20000, 7), 64, 3);
    const std::uint32_t coarse = t.tree.level_begin[level];
    const auto count_coarse = [&] {
      InteractionLists lists;
      walk_tree(t.stream, t.tree, walk, t.all_groups(), lists);
      std::size_t coarse_cells = 0, fine_cells = 0;
      for (const testing::ListWords& list : testing::words_of(t.stream, lists))
        for (const std::uint32_t cell : list.cells) ++(cell < coarse ? coarse_cells : fine_cells);
      EXPECT_GT(fine_cells, 0u);
      return coarse_cells;
    };
    EXPECT_GT(count_coarse(), 0u) << "else this shows nothing";
    open_coarse_cells(t.stream, level, t.tree);
    EXPECT_EQ(count_coarse(), 0u);
    sweep_octree(t.stream, t.particles.source.data(), t.tree);
    EXPECT_GT(count_coarse(), 0u) << "a sweep sets boxes and sizes anew";
  }
}

// How many of the first particles are own.
template <class IsOwn>
std::vector<std::uint32_t> count_own(std::uint32_t particles, const IsOwn& is_own) {
  std::vector<std::uint32_t> before{0};
  for (std::uint32_t i = 0; i < particles; ++i) before.push_back(before.back() + (is_own(i) ? 1 : 0));
  return before;
}

// Cells and groups that ghosts act on, and all others; and sweeps of the two kinds of cells one after the other.
TEST(OwnGroups, InnerOnesNeedNoGhosts) {
  constexpr std::uint32_t kParticles = 4000;
  testing::TreeSet t(testing::uniform_set(kParticles, 3), 32, 3);
  const auto is_own = [](std::uint32_t i) { return i < 2500 && i != 700; };
  const std::vector<std::uint32_t> own_before = count_own(kParticles, is_own);
  DeviceBuffer<std::uint32_t> inner("inner"), outer("outer");
  test::OnDevice before(own_before);
  DeviceBuffer<Group> own("own");
  DeviceBuffer<std::uint8_t> has_ghosts("ghosts");
  mark_ghost_cells(t.stream, before, t.tree, has_ghosts);
  keep_own_groups(t.stream, before, t.groups, own);
  InteractionLists lists;
  walk_tree(t.stream, t.tree, {.r_cut = 0.1f}, t.all_groups(), lists);
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
  const std::vector<std::uint32_t> own_before = count_own(3000, [](std::uint32_t i) { return i < 1700; });
  test::OnDevice before(own_before);
  DeviceBuffer<std::uint8_t> has_ghosts("ghosts");
  mark_ghost_cells(two.stream, before, two.tree, has_ghosts);
  for (testing::TreeSet* t : {&one, &two}) {
    auto moved = t->particles.source.download(t->stream);
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i].x += static_cast<std::uint32_t>(i) << 12;
    t->particles.source.upload(t->stream, moved);
  }
  sweep_octree(one.stream, one.particles.source.data(), one.tree);
  sweep_octree(two.stream, two.particles.source.data(), two.tree, kSweepOrder, has_ghosts.data(), 0);
  sweep_octree(two.stream, two.particles.source.data(), two.tree, kSweepOrder, has_ghosts.data(), 1);
  const auto a = one.tree.moments.download(one.stream), b = two.tree.moments.download(two.stream);
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]), 0);
  auto size = one.tree.geometry.size.download(one.stream), size_in_two = two.tree.geometry.size.download(two.stream);
  size.resize(one.tree.cells);  // without what the array is padded with
  size_in_two.resize(one.tree.cells);
  EXPECT_EQ(size_in_two, size);
}

}  // namespace
}  // namespace maki
