#include "kernels/tree/octree.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

#include "kernels/particles/particles.hpp"
#include "kernels/tree/walk.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/test_stream.hpp"

namespace maki {

namespace {

struct Built {
  const Stream& stream = test::test_stream();
  Particles particles;
  MortonSorter sorter;
  Octree tree;
  std::vector<SourceParticle> sorted;
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> first, count, first_child;
  std::vector<std::uint8_t> child_count;

  Built(const std::vector<SourceParticle>& set, std::uint32_t leaf_size, int min_level) {
    particles.resize(set.size());
    particles.source.upload(stream, set);
    particles.remainder.fill_zero(stream);
    particles.momentum.fill_zero(stream);
    std::vector<std::uint64_t> ids(set.size());
    std::iota(ids.begin(), ids.end(), 0);
    particles.id.upload(stream, ids);
    sorter.sort(stream, particles, nullptr);
    build_octree(stream, sorter.keys(), leaf_size, min_level, tree);
    sweep_octree(stream, particles.source.data(), tree);
    sorted = particles.source.download(stream);
    keys = sorter.keys().download(stream);
    first = tree.first.download(stream);
    count = tree.count.download(stream);
    first_child = tree.first_child.download(stream);
    child_count = tree.child_count.download(stream);
  }
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
  const auto set = testing::uniform_set(5000, 3);
  Built b(set, 16, 0);
  const auto ids = b.particles.id.download(b.stream);
  for (std::size_t i = 0; i < set.size(); ++i) {
    EXPECT_EQ(b.sorted[i].x, set[ids[i]].x);
    EXPECT_EQ(b.sorted[i].mass, set[ids[i]].mass);
    if (i > 0) {
      EXPECT_LE(b.keys[i - 1], b.keys[i]);
    }
  }
}

void expect_invariants(const Built& b, std::uint32_t leaf_size, int min_level) {
  ASSERT_EQ(b.first[0], 0u);
  ASSERT_EQ(b.count[0], b.sorted.size());
  for (std::size_t level = 0; level + 1 < b.tree.level_begin.size(); ++level) {
    const int shift = 63 - 3 * static_cast<int>(level);
    for (std::uint32_t c = b.tree.level_begin[level]; c < b.tree.level_begin[level + 1]; ++c) {
      ASSERT_GT(b.count[c], 0u);
      if (level > 0) {
        ASSERT_EQ(b.keys[b.first[c]] >> shift, b.keys[b.first[c] + b.count[c] - 1] >> shift);
      }
      const bool divided = level < 21 && (b.count[c] > leaf_size || static_cast<int>(level) < min_level);
      ASSERT_EQ(b.child_count[c] > 0, divided) << "level " << level;
      std::uint32_t next = b.first[c];
      for (std::uint32_t k = 0; k < b.child_count[c]; ++k) {
        const std::uint32_t child = b.first_child[c] + k;
        ASSERT_GE(child, b.tree.level_begin[level + 1]);
        ASSERT_EQ(b.first[child], next);
        next += b.count[child];
      }
      if (divided) {
        ASSERT_EQ(next, b.first[c] + b.count[c]);
      }
    }
  }
}

TEST(Octree, InvariantsHoldForUniformClusteredAndTinySets) {
  for (const std::uint32_t leaf : {1u, 8u, 16u}) {
    expect_invariants(Built(testing::uniform_set(3000, 1), leaf, 0), leaf, 0);
    expect_invariants(Built(testing::uniform_set(3000, 1), leaf, 3), leaf, 3);
    expect_invariants(Built(testing::clustered_set(4000, 2), leaf, 0), leaf, 0);
    expect_invariants(Built(testing::uniform_set(1, 4), leaf, 0), leaf, 0);
    expect_invariants(Built(testing::uniform_set(2, 5), leaf, 3), leaf, 3);
  }
}

TEST(Octree, ManyParticlesAtOnePointAreALargeLeaf) {
  auto set = testing::uniform_set(100, 7);
  for (int i = 0; i < 300; ++i)
    set.push_back({testing::to_fixed(0.3), testing::to_fixed(0.4), testing::to_fixed(0.5), 0.01f});
  Built b(set, 16, 0);
  expect_invariants(b, 16, 0);
  std::uint32_t largest_leaf = 0;
  for (std::uint32_t c = 0; c < b.tree.cells; ++c)
    if (b.child_count[c] == 0) largest_leaf = std::max(largest_leaf, b.count[c]);
  EXPECT_GE(largest_leaf, 300u);
}

TEST(Octree, MomentsAndBoxesMatchDirectSums) {
  Built b(testing::clustered_set(4000, 9), 16, 0);
  const auto moments = b.tree.moments.download(b.stream);
  const auto hx = b.tree.geometry.hx.download(b.stream);
  const auto x = b.tree.geometry.x.download(b.stream);
  const auto size = b.tree.geometry.size.download(b.stream);
  for (std::uint32_t c = 0; c < b.tree.cells; ++c) {
    double m = 0, cx = 0, cy = 0;
    for (std::uint32_t p = b.first[c]; p < b.first[c] + b.count[c]; ++p) {
      m += b.sorted[p].mass;
      cx += b.sorted[p].mass * (b.sorted[p].x / kSideToUnits);
      cy += b.sorted[p].mass * (b.sorted[p].y / kSideToUnits);
    }
    cx /= m;
    cy /= m;
    double qxx = 0, qxy = 0, trace = 0;
    for (std::uint32_t p = b.first[c]; p < b.first[c] + b.count[c]; ++p) {
      const double dx = b.sorted[p].x / kSideToUnits - cx, dy = b.sorted[p].y / kSideToUnits - cy;
      qxx += b.sorted[p].mass * dx * dx;
      qxy += b.sorted[p].mass * dx * dy;
      trace += b.sorted[p].mass * size[c] * size[c];
      EXPECT_LE(std::abs(separation(b.sorted[p].x, x[c])), hx[c] + 1e-9f);
    }
    EXPECT_NEAR(moments[c].mass, m, 1e-6 * m);
    EXPECT_NEAR(moments[c].x / kSideToUnits, cx,
                1e-7 * size[c] + 22 * 0.5 / kSideToUnits);  // float masses; half a unit for each level
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
  // Cells from level 1 on are smaller than half the box: their centres move by exactly the shift.
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

TEST(Groups, CoverEveryParticleOnceAndStayWithinTheLimit) {
  for (const std::uint32_t n_crit : {1u, 16u, 64u, 128u})
    for (const int min_level : {0, 3})
      for (const auto& set :
           {testing::uniform_set(3000, 1), testing::clustered_set(4000, 2), testing::uniform_set(1, 1)}) {
        Built b(set, 16, min_level);
        DeviceBuffer<Group> groups("groups");
        make_groups(b.stream, b.tree, b.particles.source.data(), n_crit, min_level, groups);
        std::uint32_t next = 0;
        for (const Group& g : groups.download(b.stream)) {
          EXPECT_EQ(g.first, next);
          EXPECT_GT(g.count, 0u);
          EXPECT_LE(g.count, n_crit);
          if (min_level > 0) {
            EXPECT_LE(std::max({g.hx, g.hy, g.hz}), 0.126f);
          }
          for (std::uint32_t p = g.first; p < g.first + g.count; ++p) {
            EXPECT_LE(std::abs(separation(b.sorted[p].x, g.x)), g.hx);
            EXPECT_LE(std::abs(separation(b.sorted[p].z, g.z)), g.hz);
          }
          next += g.count;
        }
        EXPECT_EQ(next, set.size());
      }
}

}  // namespace

// Cells above the level of whole cells: cubes, never multipoles.

namespace {

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
    WalkOptions walk;
    walk.theta = 1.5f;
    walk.r_cut = r_cut;
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

}  // namespace

}  // namespace maki
