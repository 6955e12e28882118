#include "kernels/tree/octree.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/particles/particles.hpp"
#include "tests/kernels/tree/sets.hpp"
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
}  // namespace maki
