// What one rank would send to several boxes, read back by itself: no messages needed.
#include "host/let/forest.hpp"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "host/let/blocks.hpp"
#include "kernels/device/device.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

TEST(DomainTree, HoldsEveryRootOnceInOrder) {
  for (const std::uint32_t roots : {1u, 2u, 7u, 8u, 9u, 15u, 63u, 64u, 65u, 511u, 513u, 4097u}) {
    const DomainTree tree = make_domain_tree(roots);
    ASSERT_EQ(tree.level_begin.front(), 0u);
    ASSERT_EQ(tree.level_begin[1], 1u);
    ASSERT_EQ(tree.level_begin.back(), tree.nodes());
    std::uint32_t next = 1;  // children follow each other, level after level
    for (std::uint32_t i = 0; i < tree.nodes(); ++i) {
      EXPECT_EQ(tree.first_child[i], next);
      EXPECT_GE(tree.child_count[i], 1);
      EXPECT_LE(tree.child_count[i], 8);
      next += tree.child_count[i];
    }
    EXPECT_EQ(next, tree.cells());
    EXPECT_LE(tree.nodes(), (roots + 6) / 7 + tree.level_begin.size());
  }
}

TEST(DomainTree, OfNoRootsHasNoNodes) {
  const DomainTree tree = make_domain_tree(0);
  EXPECT_EQ(tree.cells(), 0u);
  EXPECT_EQ(tree.level_begin, std::vector<std::uint32_t>{0});
}

WalkTarget box_at(double x, double y, double z, float half) {
  const float h = half * kSideInUnits;
  return {testing::to_fixed(x), testing::to_fixed(y), testing::to_fixed(z), h, h, h};
}

LetRule rule_of(const WalkOptions& walk, float skin) {
  return {walk.rule(), 1 + skin, walk.r_cut > 0, walk.small_cell};
}

struct Exported : testing::TreeSet, LetSending {
  std::vector<BlockCounts> counts;
  Forest forest;

  Exported(const std::vector<SourceParticle>& set, int min_level, const WalkOptions& walk,
           const std::vector<WalkTarget>& targets, bool compress = false, float skin = 0.1f)
      : TreeSet(set, 64, min_level) {
    counts = select_essential(stream, tree, rule_of(walk, skin), targets, selection);
    std::vector<BlockCounts> sent;
    for (const BlockCounts& c : counts)
      if (c.cells > 0) sent.push_back(c);
    blocks = Blocks(stream, sent, compress);
    pack();
    build_forest(stream, blocks, packed, make_domain_tree(static_cast<std::uint32_t>(sent.size())), forest);
    fill_forest(stream, blocks, packed, true, forest);
  }
  void pack(bool with_shapes = true) { LetSending::pack(stream, tree, particles.source.data(), with_shapes); }
};

// Cells and leaves below a cell of a forest, as a walk meets them.
struct Reached {
  double mass = 0;
  std::uint64_t leaves = 0, closed = 0, divided = 0, particles = 0;
};

Reached reach(Exported& e, std::uint32_t cell) {
  const auto count = e.forest.tree.count.download(e.stream), first = e.forest.tree.first.download(e.stream);
  const auto first_child = e.forest.tree.first_child.download(e.stream);
  const auto child_count = e.forest.tree.child_count.download(e.stream);
  const auto moments = e.forest.tree.moments.download(e.stream);
  const auto particles = e.forest.particles.download(e.stream);
  Reached sum;
  std::vector<std::uint32_t> open{cell};
  while (!open.empty()) {
    const std::uint32_t c = open.back();
    open.pop_back();
    if (child_count[c] > 0) {
      ++sum.divided;
      for (std::uint32_t k = 0; k < child_count[c]; ++k) open.push_back(first_child[c] + k);
    } else if (count[c] == kClosedCell) {
      ++sum.closed;
      sum.mass += moments[c].mass;
    } else {
      ++sum.leaves;
      sum.particles += count[c];
      double mass = 0;
      for (std::uint32_t p = first[c]; p < first[c] + count[c]; ++p) mass += particles[p].mass;
      EXPECT_NEAR(mass, moments[c].mass, 1e-6 * mass);
      sum.mass += mass;
    }
  }
  return sum;
}

TEST(LetForest, HoldsTheWholeMassForEveryTarget) {
  const std::vector<WalkTarget> targets{box_at(0.5, 0.5, 0.5, 0.25f), box_at(0.3, 0.3, 0.3, 0.02f),
                                        box_at(0.7, 0.4, 0.5, 0.05f), box_at(0.05, 0.05, 0.05, 0.01f)};
  Exported e(testing::clustered_set(4000, 3), 0, {}, targets);
  ASSERT_EQ(e.blocks.size(), targets.size());
  const std::uint32_t nodes = 1;
  Reached all;
  for (std::uint32_t r = 0; r < targets.size(); ++r) {
    const Reached one = reach(e, nodes + r);
    EXPECT_NEAR(one.mass, 1.0, 1e-5);
    EXPECT_EQ(one.divided + one.closed, e.counts[r].multipoles);
    EXPECT_EQ(one.divided + one.closed + one.leaves, e.counts[r].cells);
    EXPECT_EQ(one.particles, e.counts[r].particles);
    all.mass += one.mass;
  }
  EXPECT_EQ(e.counts[0].particles, 4000u);  // the box holds everything
  EXPECT_LT(e.counts[1].particles, 4000u);
  EXPECT_LE(e.counts[3].cells, 9u);  // outside: the root is wide, its children are far
  EXPECT_EQ(e.counts[3].particles, 0u);
  EXPECT_NEAR(e.forest.tree.moments.download(e.stream)[0].mass, all.mass, 1e-5);
}

TEST(LetForest, OfManyDomainsHasNodesAboveNodes) {
  std::vector<WalkTarget> targets;
  for (int i = 0; i < 20; ++i) targets.push_back(box_at(0.3 + 0.02 * i, 0.5, 0.7 - 0.015 * i, 0.02f));
  Exported e(testing::clustered_set(1000, 12), 0, {}, targets);
  const std::uint32_t nodes = 4;  // 20 roots under 3 nodes under one
  ASSERT_EQ(e.forest.tree.cells, e.blocks.total().cells + nodes);
  const auto moments = e.forest.tree.moments.download(e.stream);
  EXPECT_NEAR(moments[0].mass, 20.0, 1e-4);
  EXPECT_NEAR(moments[1].mass + moments[2].mass + moments[3].mass, 20.0, 1e-4);
  EXPECT_NEAR(reach(e, 0).mass, 20.0, 1e-4);
  for (std::uint32_t r = 0; r < targets.size(); ++r) EXPECT_NEAR(reach(e, nodes + r).mass, 1.0, 1e-5);
}

// Owner and importer agree on every bit of what is sent, and on all but roundings of what is swept again.
TEST(LetForest, CellsAreThoseOfTheTree) {
  Exported e(testing::clustered_set(3000, 4), 0, {}, {box_at(0.5, 0.5, 0.5, 0.25f)});
  const auto m = e.tree.moments.download(e.stream), n = e.forest.tree.moments.download(e.stream);
  const auto hx = e.tree.geometry.hx.download(e.stream), forest_hx = e.forest.tree.geometry.hx.download(e.stream);
  const auto size = e.tree.geometry.size.download(e.stream), fsize = e.forest.tree.geometry.size.download(e.stream);
  const auto off = e.tree.geometry.offset.download(e.stream), foff = e.forest.tree.geometry.offset.download(e.stream);
  const auto multipoles = e.forest.multipoles.download(e.stream), chosen = e.selection.multipoles.download(e.stream);
  ASSERT_EQ(multipoles.size(), chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::uint32_t mine = chosen[i], theirs = multipoles[i];
    EXPECT_EQ(std::tie(m[mine].x, m[mine].y, m[mine].z, m[mine].mass, m[mine].qxx, m[mine].qyz),
              std::tie(n[theirs].x, n[theirs].y, n[theirs].z, n[theirs].mass, n[theirs].qxx, n[theirs].qyz));
    EXPECT_EQ(std::tie(hx[mine], size[mine], off[mine]), std::tie(forest_hx[theirs], fsize[theirs], foff[theirs]));
  }
  // The target holds the whole tree: lists over the forest stand for each particle once.
  InteractionLists lists;
  walk_tree(e.stream, e.forest.tree, {}, e.all_groups(), lists);
  const auto words = testing::words_of(e.stream, lists);
  const auto count = e.forest.tree.count.download(e.stream);
  for (const auto& w : words)
    for (const std::uint32_t leaf : w.leaves) ASSERT_LT(count[leaf], kDividedCell);
}

// The whole selection, cell by cell, against a walk in plain recursion.
std::uint64_t expected_cells(Exported& e, const WalkTarget& t, const WalkOptions& walk, float skin, std::uint32_t cell,
                             std::map<std::uint32_t, int>& particles) {
  const CellGeometryView g = e.tree.geometry.view();
  const std::uint32_t count = e.tree.count.data()[cell], first = e.tree.first.data()[cell];
  if (walk.r_cut > 0 && !within_reach(walk.rule(), g.box_gap_squared(t, cell))) return 0;
  const float gap = g.centre_gap_squared(t, cell);
  const float opening = opening_distance(walk.rule(), t, g.size_of(cell)) * (1 + skin);
  const bool far = gap > opening * opening;
  if (count <= walk.small_cell || (!far && e.tree.child_count.data()[cell] == 0)) {
    for (std::uint32_t p = first; p < first + count; ++p) ++particles[p];
    return 1;
  }
  if (far) return 1;
  std::uint64_t below = 0;
  const std::uint32_t child = e.tree.first_child.data()[cell];
  for (std::uint32_t k = 0; k < e.tree.child_count.data()[cell]; ++k)
    below += expected_cells(e, t, walk, skin, child + k, particles);
  return below > 0 ? below + 1 : 0;
}

TEST(LetForest, TakesWhatAPlainWalkTakes) {
  if (std::string(backend_name()) != "cpu") GTEST_SKIP() << "reads device memory";
  for (const float r_cut : {0.0f, 0.07f}) {
    const WalkOptions walk{.r_cut = r_cut};
    const std::vector<WalkTarget> targets{box_at(0.99, 0.02, 0.5, 0.04f), box_at(0.4, 0.5, 0.6, 0.1f),
                                          box_at(0.5, 0.5, 0.5, 0.001f)};
    for (const auto& set : {testing::uniform_set(5000, 6), testing::clustered_set(5000, 7)}) {
      Exported e(set, r_cut > 0 ? kPeriodicMinLevel : 0, walk, targets);
      const auto chosen = e.selection.particles.download(e.stream);
      std::size_t at = 0;
      for (std::size_t t = 0; t < targets.size(); ++t) {
        std::map<std::uint32_t, int> particles;
        EXPECT_EQ(e.counts[t].cells, expected_cells(e, targets[t], walk, 0.1f, 0, particles));
        ASSERT_EQ(e.counts[t].particles, particles.size());
        for (std::size_t k = 0; k < e.counts[t].particles; ++k) EXPECT_EQ(particles.count(chosen[at++]), 1u);
      }
    }
  }
}

TEST(LetForest, BeyondTheCutoffThereIsNothing) {
  Exported e(testing::uniform_set(500, 8, 0.4, 0.6), 0, {.r_cut = 0.05f},
             {box_at(0.1, 0.5, 0.5, 0.1f), box_at(0.32, 0.5, 0.5, 0.05f), box_at(0.7, 0.7, 0.7, 0.06f)});
  EXPECT_EQ(e.counts[0].cells, 0u);
  EXPECT_GT(e.counts[1].particles, 0u);
  EXPECT_LT(e.counts[1].particles, 250u);
  EXPECT_EQ(e.blocks.size(), e.counts[2].cells > 0 ? 2u : 1u);
}

TEST(LetForest, OfAFarTreeIsOneClosedCell) {
  Exported e(testing::uniform_set(500, 9, 0.48, 0.52), 0, {}, {box_at(0.7, 0.7, 0.7, 0.02f)});
  EXPECT_EQ(e.counts[0].cells, 1u);
  EXPECT_EQ(e.counts[0].multipoles, 1u);
  EXPECT_EQ(e.counts[0].particles, 0u);
  EXPECT_EQ(e.forest.tree.count.download(e.stream)[1], kClosedCell);
  EXPECT_EQ(e.blocks.payload_bytes(0), 64u);
  EXPECT_EQ(e.blocks.message_bytes(0), 68u);
}

TEST(LetForest, OfOneParticleIsALeaf) {
  Exported e(testing::uniform_set(1, 9, 0.4, 0.6), 0, {}, {box_at(0.9, 0.9, 0.9, 0.05f)});
  EXPECT_EQ(e.counts[0].cells, 1u);
  EXPECT_EQ(e.counts[0].particles, 1u);
  EXPECT_EQ(e.counts[0].multipoles, 0u);
  EXPECT_EQ(e.forest.tree.count.download(e.stream)[1], 1u);
}

TEST(LetForest, OfNothingIsEmpty) {
  const Stream& stream = test::test_stream();
  Forest forest;
  DeviceBuffer<std::byte> none("none");
  const Blocks blocks(stream, {});
  build_forest(stream, blocks, none, make_domain_tree(0), forest);
  fill_forest(stream, blocks, none, true, forest);
  EXPECT_EQ(forest.tree.cells, 0u);
  EXPECT_EQ(forest.particles.size(), 0u);
}

// Domains all around a periodic box: their common box holds them all, also where one reaches over the box's edge.
TEST(LetForest, BoxOfDomainsHoldsThemAcrossTheEdge) {
  Exported e(testing::uniform_set(3000, 10), kPeriodicMinLevel, {}, {box_at(0.5, 0.5, 0.5, 0.5f)});
  auto moved = e.particles.source.download(e.stream);
  for (auto& p : moved) p.x -= testing::to_fixed(0.001), p.y += testing::to_fixed(0.002);
  e.particles.source.upload(e.stream, moved);
  sweep_octree(e.stream, e.particles.source.data(), e.tree);
  e.pack(false);
  fill_forest(e.stream, e.blocks, e.packed, false, e.forest);
  const auto x = e.forest.tree.geometry.x.download(e.stream), y = e.forest.tree.geometry.y.download(e.stream);
  const auto hx = e.forest.tree.geometry.hx.download(e.stream), hy = e.forest.tree.geometry.hy.download(e.stream);
  for (const std::uint32_t cell : {0u, 1u})
    for (const auto& p : moved) {
      EXPECT_LE(std::abs(separation(p.x, x[cell])), hx[cell]);
      EXPECT_LE(std::abs(separation(p.y, y[cell])), hy[cell]);
    }
}

// Of what is exported, the particles and multipoles of the same list with and without compression.
TEST(LetForest, CompressedIsNearlyTheSame) {
  const std::vector<WalkTarget> targets{box_at(0.5, 0.5, 0.5, 0.1f), box_at(0.9, 0.9, 0.9, 0.01f)};
  const auto set = testing::clustered_set(4000, 11);
  Exported plain(set, 0, {}, targets), packed(set, 0, {}, targets, true);
  for (std::size_t b = 0; b < targets.size(); ++b) {
    const BlockCounts& c = plain.counts[b];
    EXPECT_EQ(plain.blocks.payload_bytes(b), 16 * c.particles + 64 * c.multipoles);
    EXPECT_EQ(packed.blocks.payload_bytes(b), (6 * c.particles + 15) / 16 * 16 + 40 * c.multipoles);
    EXPECT_EQ(packed.blocks.message_bytes(b), packed.blocks.payload_bytes(b) + 4 * (c.cells + c.particles));
  }
  const auto p = plain.forest.particles.download(plain.stream), q = packed.forest.particles.download(packed.stream);
  const auto parents = packed.forest.parents.download(packed.stream);
  const auto cells = plain.forest.multipoles.download(plain.stream);
  ASSERT_EQ(cells, packed.forest.multipoles.download(packed.stream));
  const auto hx = plain.forest.tree.geometry.hx.download(plain.stream);
  const auto hy = plain.forest.tree.geometry.hy.download(plain.stream);
  constexpr double kPart = 1.01 * 1.008 / 65535;  // half a step of a half extent rounded up; and rounding to integers
  for (std::size_t i = 0; i < p.size(); ++i) {
    ASSERT_EQ(p[i].mass, q[i].mass);
    const std::uint32_t parent = cells[parents[i]];
    ASSERT_LE(std::abs(signed_difference(p[i].x, q[i].x)), kPart * hx[parent] * kSideToUnits + 1);
    ASSERT_LE(std::abs(signed_difference(p[i].y, q[i].y)), kPart * hy[parent] * kSideToUnits + 1);
  }
  const auto m = plain.forest.tree.moments.download(plain.stream);
  const auto n = packed.forest.tree.moments.download(packed.stream);
  const auto packed_hx = packed.forest.tree.geometry.hx.download(packed.stream);
  for (const std::uint32_t c : cells) {
    ASSERT_EQ(m[c].mass, n[c].mass);
    ASSERT_GE(packed_hx[c], hx[c]);
    ASSERT_LE(packed_hx[c], 1.008f * hx[c]);
    ASSERT_LE(std::abs(signed_difference(m[c].x, n[c].x)), kPart * hx[c] * kSideToUnits + 1);
    ASSERT_NEAR(m[c].qxy, n[c].qxy, 2e-5 * m[c].mass * hx[c] * hy[c]);
    ASSERT_NEAR(m[c].qxx, n[c].qxx, 2e-5 * m[c].mass * hx[c] * hx[c]);
  }
  // A reuse step brings no masses and keeps those that are there.
  packed.pack(false);
  fill_forest(packed.stream, packed.blocks, packed.packed, false, packed.forest);
  const auto again = packed.forest.particles.download(packed.stream);
  for (std::size_t i = 0; i < q.size(); ++i) {
    ASSERT_EQ(again[i].x, q[i].x);
    ASSERT_EQ(again[i].mass, q[i].mass);
  }
}

TEST(LetForest, ALoneLeafIsNotCompressed) {
  const auto set = testing::uniform_set(3, 9, 0.4, 0.6);
  Exported plain(set, 0, {}, {box_at(0.9, 0.9, 0.9, 0.05f)}), packed(set, 0, {}, {box_at(0.9, 0.9, 0.9, 0.05f)}, true);
  EXPECT_EQ(packed.blocks.message_bytes(0), plain.blocks.message_bytes(0));
  const auto p = plain.forest.particles.download(plain.stream), q = packed.forest.particles.download(packed.stream);
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_EQ(p[i].z, q[i].z);
}

}  // namespace
}  // namespace maki
