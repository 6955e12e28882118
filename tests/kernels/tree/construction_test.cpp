// The octree and its groups against a recursive construction, cell by cell and integer by integer.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>

#include "kernels/tree/leaf_walk.hpp"
#include "kernels/tree/octree.hpp"
#include "tests/kernels/particles/at_rest.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/on_device.hpp"

namespace maki {
namespace {

using Keys = std::vector<std::uint64_t>;

struct Cell {
  std::uint32_t first, count;
  int level;
  std::uint32_t first_child = 0, children = 0;
};

struct Rule {
  std::uint32_t leaf_size;
  int min_level;
};

// Breadth first from the root; children are told apart by three bits of the keys, one particle after the other.
std::vector<Cell> reference_tree(const Keys& keys, const Rule& rule) {
  std::vector<Cell> cells{{0, static_cast<std::uint32_t>(keys.size()), 0}};
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const Cell cell = cells[c];
    const bool divided = cell.level < 21 && (cell.count > rule.leaf_size || cell.level < rule.min_level);
    cells[c].first_child = static_cast<std::uint32_t>(cells.size());
    if (!divided) continue;
    const int shift = 60 - 3 * cell.level;
    for (std::uint32_t p = cell.first; p < cell.first + cell.count; ++p) {
      if (p == cell.first || (keys[p] >> shift) != (keys[p - 1] >> shift)) {
        cells.push_back({p, 0, cell.level + 1});
        ++cells[c].children;
      }
      ++cells.back().count;
    }
  }
  return cells;
}

struct Range {
  std::uint32_t first, count;
  bool operator==(const Range&) const = default;
};

void pieces(const Cell& cell, std::uint32_t group_size, std::vector<Range>& out) {
  for (std::uint32_t p = cell.first; p < cell.first + cell.count; p += group_size)
    out.push_back({p, std::min(group_size, cell.first + cell.count - p)});
}

// Groups inside one cell that is too large, or too high, to be one.
void reference_groups(const std::vector<Cell>& tree, const Cell& cell, std::uint32_t group_size, int min_level,
                      std::vector<Range>& out) {
  if (cell.children == 0) return pieces(cell, group_size, out);
  bool open = false;  // the last group may take another sibling
  for (std::uint32_t c = cell.first_child; c < cell.first_child + cell.children; ++c) {
    const Cell& child = tree[c];
    if (child.level < min_level || child.count > group_size) {
      open = false;
      reference_groups(tree, child, group_size, min_level, out);
    } else if (open && out.back().count + child.count <= group_size) {
      out.back().count += child.count;
    } else {
      out.push_back({child.first, child.count});
      open = true;
    }
  }
}

std::vector<Range> reference_groups(const std::vector<Cell>& tree, std::uint32_t group_size, int min_level) {
  std::vector<Range> out;
  if (min_level == 0 && tree[0].count <= group_size)
    pieces(tree[0], group_size, out);
  else
    reference_groups(tree, tree[0], group_size, min_level, out);
  return out;
}

Keys sorted_keys(std::vector<SourceParticle>& set) {
  testing::sort_by_key(set);
  Keys keys;
  for (const SourceParticle& p : set) keys.push_back(morton_key(p.x, p.y, p.z));
  return keys;
}

std::vector<SourceParticle> with_crowds(std::vector<SourceParticle> set, std::size_t crowd) {
  for (const double x : {0.3, 0.3000001, 0.999999})
    set.insert(set.end(), crowd, {testing::to_fixed(x), testing::to_fixed(0.4), testing::to_fixed(0.5), 0.01f});
  return set;
}

struct Case {
  std::string name;
  std::vector<SourceParticle> set;
};

// Sizes about the stretches of 64 and 128 that threads go through, sets from even to all at one point.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::size_t n : {1u, 2u, 3u, 16u, 17u, 63u, 64u, 65u, 127u, 128u, 129u, 1000u, 5000u})
    all.push_back({"uniform " + std::to_string(n), testing::uniform_set(n, static_cast<unsigned>(n))});
  for (const std::size_t n : {100u, 4000u, 9001u})
    all.push_back({"clustered " + std::to_string(n), testing::clustered_set(n, static_cast<unsigned>(n))});
  all.push_back({"Plummer", testing::plummer_set(3000, 5, 1e-4)});
  all.push_back({"crowds of 20", with_crowds(testing::uniform_set(500, 1), 20)});
  all.push_back({"crowds of 700", with_crowds(testing::clustered_set(500, 2), 700)});
  all.push_back({"one point", std::vector<SourceParticle>(1000, {123456789u, 1u << 31, ~0u, 1.0f})});
  all.push_back({"two corners", {{0, 0, 0, 1.0f}, {~0u, ~0u, ~0u, 1.0f}}});
  return all;
}

void expect_tree(const Octree& tree, const Stream& stream, const std::vector<Cell>& expected) {
  ASSERT_EQ(tree.cells, expected.size());
  const auto first = tree.first.download(stream), count = tree.count.download(stream),
             first_child = tree.first_child.download(stream);
  const auto child_count = tree.child_count.download(stream);
  std::vector<std::uint32_t> level_begin;
  for (std::uint32_t c = 0; c < tree.cells; ++c) {
    const Cell& e = expected[c];
    if (static_cast<std::size_t>(e.level) == level_begin.size()) level_begin.push_back(c);
    ASSERT_EQ(first[c], e.first) << "cell " << c << " of level " << e.level;
    ASSERT_EQ(count[c], e.count) << "cell " << c << " of level " << e.level;
    ASSERT_EQ(child_count[c], e.children) << "cell " << c << " of level " << e.level;
    ASSERT_EQ(first_child[c], e.first_child) << "cell " << c << " of level " << e.level;
  }
  level_begin.push_back(tree.cells);
  EXPECT_EQ(tree.level_begin, level_begin);
}

void expect_cubes(Octree& tree, const Stream& stream, const std::vector<Cell>& expected,
                  const std::vector<SourceParticle>& sorted) {
  const auto x = tree.geometry.x.download(stream), z = tree.geometry.z.download(stream);
  for (std::uint32_t c = 0; c < tree.cells; ++c) {
    const double cube = std::ldexp(1.0, 32 - expected[c].level);
    const SourceParticle p = sorted[expected[c].first];
    ASSERT_EQ(x[c], static_cast<std::uint32_t>((std::floor(p.x / cube) + 0.5) * cube)) << "cell " << c;
    ASSERT_EQ(z[c], static_cast<std::uint32_t>((std::floor(p.z / cube) + 0.5) * cube)) << "cell " << c;
  }
}

TEST(Construction, TreeIsThatOfARecursion) {
  const Stream& stream = test::test_stream();
  Octree tree;  // one for all cases: it grows and shrinks
  for (Case& c : cases()) {
    const Keys host = sorted_keys(c.set);
    test::OnDevice keys(host);
    for (const std::uint32_t leaf_size : {1u, 2u, 7u, 8u, 16u, 33u, 64u})
      for (const int min_level : {0, 3}) {
        SCOPED_TRACE(c.name + ", leaf_size " + std::to_string(leaf_size) + ", min_level " + std::to_string(min_level));
        const auto expected = reference_tree(host, {leaf_size, min_level});
        build_octree(stream, keys, leaf_size, min_level, tree);
        expect_tree(tree, stream, expected);
        expect_cubes(tree, stream, expected, c.set);
        if (HasFatalFailure()) return;
      }
  }
}

TEST(Construction, GroupsAreThoseOfARecursion) {
  const Stream& stream = test::test_stream();
  Octree tree;
  DeviceBuffer<Group> groups("groups");
  DeviceBuffer<std::uint64_t> keys("keys");
  DeviceBuffer<SourceParticle> particles("particles");
  for (Case& c : cases()) {
    const Keys host = sorted_keys(c.set);
    keys.upload(stream, host);
    particles.upload(stream, c.set);
    for (const std::uint32_t leaf_size : {1u, 16u, 64u})
      for (const int min_level : {0, 1, 3}) {
        build_octree(stream, keys, leaf_size, min_level, tree);
        const auto cells = reference_tree(host, {leaf_size, min_level});
        for (const std::uint32_t group_size : {1u, 15u, 64u, 256u}) {
          const auto expected = reference_groups(cells, group_size, min_level);
          make_groups(stream, tree, particles.data(), group_size, min_level, groups);
          std::vector<Range> found;
          for (const Group& g : groups.download(stream)) found.push_back({g.first, g.count});
          ASSERT_EQ(found, expected) << c.name << ", leaf_size " << leaf_size << ", min_level " << min_level
                                     << ", group_size " << group_size;
        }
      }
  }
}

struct Visits {
  std::vector<std::array<std::uint32_t, 4>> leaves;
  void operator()(std::uint32_t first, std::uint32_t end, int top, int level) {
    leaves.push_back({first, end, static_cast<std::uint32_t>(top), static_cast<std::uint32_t>(level)});
  }
};

TEST(Construction, LeavesDoNotDependOnHowParticlesAreShared) {
  for (Case& c : cases()) {
    const Keys keys = sorted_keys(c.set);
    const auto n = static_cast<std::uint32_t>(keys.size());
    for (const Rule& rule : {Rule{1, 0}, Rule{16, 0}, Rule{16, 3}, Rule{64, 0}}) {
      const LeafWalk walk{keys.data(), n, rule.leaf_size, rule.min_level};
      Visits whole;
      walk(0, n, whole);
      ASSERT_FALSE(whole.leaves.empty());
      EXPECT_EQ(whole.leaves.front()[0], 0u);
      EXPECT_EQ(whole.leaves.back()[1], n);
      for (const std::uint32_t stretch : {1u, 5u, 64u, 100u}) {
        Visits parts;
        for (std::uint32_t begin = 0; begin < n; begin += stretch) walk(begin, std::min(n, begin + stretch), parts);
        ASSERT_EQ(parts.leaves, whole.leaves) << c.name << ", leaf_size " << rule.leaf_size << ", stretch " << stretch;
      }
    }
  }
}

// Without the padding.
template <class T>
std::vector<T> cells_of(const Stream& stream, const Octree& tree, const DeviceBuffer<T>& array) {
  std::vector<T> values = array.download(stream);
  values.resize(tree.cells);
  return values;
}

TEST(Construction, SweepGivesTheSameBitsInEitherOrder) {
  const Stream& stream = test::test_stream();
  Octree one, other;
  for (Case& c : cases()) {
    const Keys host = sorted_keys(c.set);
    test::OnDevice keys(host);
    test::OnDevice particles(c.set);
    build_octree(stream, keys, 8, 0, one);
    build_octree(stream, keys, 8, 0, other);
    for (int again = 0; again < 2; ++again) {
      sweep_octree(stream, particles.data(), one, SweepOrder::kLeavesFirst);
      sweep_octree(stream, particles.data(), other, SweepOrder::kByLevel);
      const auto a = one.moments.download(stream), b = other.moments.download(stream);
      ASSERT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(CellMoments)), 0) << c.name;
      ASSERT_EQ(cells_of(stream, one, one.geometry.x), cells_of(stream, other, other.geometry.x)) << c.name;
      ASSERT_EQ(cells_of(stream, one, one.geometry.hy), cells_of(stream, other, other.geometry.hy)) << c.name;
      ASSERT_EQ(cells_of(stream, one, one.geometry.offset), cells_of(stream, other, other.geometry.offset)) << c.name;
    }
  }
}

TEST(Construction, ARebuildBringsNextToNothingToTheHost) {
  testing::TreeSet t(testing::clustered_set(20000, 3), 64, 3, 16);
  reset_transfer_counters();
  t.build();
  EXPECT_LE(transfer_counters().to_host, 128u);
  EXPECT_LE(transfer_counters().waits, 2u);
  EXPECT_EQ(transfer_counters().to_device, 0u);
}

TEST(Construction, SteadyRebuildsAllocateNothing) {
  testing::TreeSet t(testing::clustered_set(20000, 3), 64, 3, 16);
  t.build();
  std::mt19937 random(7);
  const auto before = pool_report();
  for (int i = 0; i < 5; ++i) {
    auto moved = t.particles.source.download(t.stream);
    for (auto& p : moved) p.x += static_cast<std::uint32_t>(random() % 2000001) - 1000000u;
    t.particles.source.upload(t.stream, moved);
    t.sorter.release_keys();
    t.build();
  }
  EXPECT_EQ(pool_report().system_allocations, before.system_allocations);
}

}  // namespace
}  // namespace maki
