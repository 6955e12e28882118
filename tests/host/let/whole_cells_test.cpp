#include "host/let/local_essential_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "host/let/forest.hpp"
#include "kernels/particles/joined_sources.hpp"
#include "kernels/tree/octree.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using Set = std::vector<SourceParticle>;

bool holds(std::uint32_t centre, float half, std::uint32_t u) { return axis_distance(u, centre) <= half; }

bool holds(const WalkTarget& t, const SourceParticle& p) {
  return holds(t.x, t.hx, p.x) && holds(t.y, t.hy, p.y) && holds(t.z, t.hz, p.z);
}

WalkTarget on_all_axes(std::uint32_t centre, float half) { return {centre, centre, centre, half, half, half}; }

// Sides between two cells of an axis, of levels `a_level` and `b_level`; 0 where they touch.
double cell_gap(std::int64_t a, int a_level, std::int64_t b, int b_level) {
  const double low = std::ldexp(static_cast<double>(a), -a_level);
  const double high = std::ldexp(static_cast<double>(a + 1), -a_level);
  double gap = 1;
  for (const int image : {-1, 0, 1}) {
    const double from = std::ldexp(static_cast<double>(b), -b_level) + image;
    const double to = std::ldexp(static_cast<double>(b + 1), -b_level) + image;
    gap = std::min(gap, std::max({from - high, low - to, 0.0}));
  }
  return gap;
}

TEST(WholeCells, TheLevelIsThatOfSomeEightParticlesACell) {
  EXPECT_EQ(whole_cell_level(1, 3), 3);
  EXPECT_EQ(whole_cell_level(1, 0), 1) << "groups lie in cells one level above";
  for (std::uint64_t side = 16; side <= 4096; side *= 2) {
    const int level = whole_cell_level(side * side * side, 3);
    EXPECT_EQ(side, std::uint64_t{2} << level) << "two to a side of a cell";
  }
  int before = 1;
  for (std::uint64_t n = 1; n != 0; n <<= 1) {
    const int level = whole_cell_level(n, 1);
    const double mean = static_cast<double>(n) / std::pow(8.0, level);
    EXPECT_GE(level, before);
    EXPECT_LE(level, kMortonLevels - 1);
    if (level > 1 && level < kMortonLevels - 1) {
      EXPECT_GT(mean, 1.5);
      EXPECT_LE(mean, 12);
    }
    before = level;
  }
}

// A particle at u, its group's cell, and every cell that its list may meet.
void expect_cells_around(const WalkTarget& grown, std::uint32_t u, double r_cut, int level) {
  const std::int64_t parent = level == 1 ? 0 : u >> (33 - level);
  const std::uint32_t side = 1u << (32 - level);
  for (std::int64_t cell = 0; cell < std::int64_t{1} << level; ++cell) {
    if (cell_gap(parent, level - 1, cell, level) >= r_cut) continue;
    const std::uint32_t begin = static_cast<std::uint32_t>(cell) * side;
    for (const std::uint32_t inside : {0u, 1u, side / 2, side - 1})
      ASSERT_TRUE(holds(grown.x, grown.hx, begin + inside))
          << "cell " << cell << " of level " << level << " at " << u << ", cutoff " << r_cut;
  }
}

TEST(WholeCells, GrownTargetsHoldEveryCellThatAListMeets) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> chance(0, 1);
  for (int trial = 0; trial < 3000; ++trial) {
    const int level = 1 + trial % 6;
    const double r_cut = trial % 7 == 0 ? std::ldexp(1.0, -level) : 0.24 * chance(random);
    auto centre = static_cast<std::uint32_t>(random());
    if (trial % 3 == 0) centre &= ~0u << (32 - level - 1);  // ends at cells' ends
    auto extent = static_cast<std::uint32_t>(chance(random) * std::pow(2.0, 1 + 30 * chance(random)));
    if (trial % 3 == 0) extent &= ~0u << (32 - level - 1);
    const WalkTarget target = on_all_axes(centre, static_cast<float>(extent));
    const WalkTarget grown = grow_to_whole_cells(target, static_cast<float>(r_cut), level);
    EXPECT_EQ(std::tie(grown.x, grown.hx), std::tie(grown.y, grown.hy));
    EXPECT_EQ(std::tie(grown.x, grown.hx), std::tie(grown.z, grown.hz));
    for (int k = 0; k < 12; ++k) {
      const auto offset = k == 0 ? extent : static_cast<std::uint32_t>(chance(random) * extent);
      expect_cells_around(grown, centre + offset, r_cut, level);
      expect_cells_around(grown, centre - offset, r_cut, level);
      if (HasFatalFailure()) return;
    }
    // And not much more: the cutoff and the margin beyond the target, or the whole axis.
    const double most = extent / kSideToUnits + 1.001 * r_cut + whole_cell_margin(level);
    EXPECT_LE(static_cast<double>(grown.hx) / kSideToUnits, std::min(0.5, most) + 1e-6);
  }
}

TEST(WholeCells, AxesAreGrownOneByOne) {
  const WalkTarget target{0x12345678u, 0xfffff000u, 0x80000000u, 1000.0f, 0x1p31f, 0x1.8p29f};
  const WalkTarget grown = grow_to_whole_cells(target, 0.1f, 5);
  for (const auto& [u, half, found, found_half] :
       {std::tuple{target.x, target.hx, grown.x, grown.hx}, std::tuple{target.y, target.hy, grown.y, grown.hy},
        std::tuple{target.z, target.hz, grown.z, grown.hz}}) {
    const WalkTarget alone = grow_to_whole_cells(on_all_axes(u, half), 0.1f, 5);
    EXPECT_EQ(alone.x, found);
    EXPECT_EQ(alone.hx, found_half);
  }
}

TEST(WholeCells, AWholeAxisStaysWhole) {
  for (const float half : {0x1p31f, 0x1.000002p31f, 0x1p32f, 0x1.fp30f})
    for (const std::uint32_t centre : {0u, 0x80000000u, 0x12345678u}) {
      const WalkTarget grown = grow_to_whole_cells(on_all_axes(centre, half), 0.05f, 4);
      for (const std::uint32_t u : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu, centre, centre + 0x80000000u})
        EXPECT_TRUE(holds(grown.x, grown.hx, u)) << half << " " << centre << " " << u;
    }
}

// Clusters that the edges of the box cut, and some particles everywhere.
Set set_across_edges(std::size_t n, unsigned seed) {
  Set set = testing::clustered_set(n, seed);
  for (SourceParticle& p : set) p.x += 0x70000000u, p.y += 0x90000000u, p.z += 0x84000000u;
  const Set everywhere = testing::uniform_set(n / 8, seed);
  std::copy(everywhere.begin(), everywhere.end(), set.begin());
  return set;
}

// Of the box, as a domain of a rank may be.
struct Part {
  std::array<std::uint32_t, 3> begin, end;
  bool has(const SourceParticle& p) const {
    return p.x >= begin[0] && p.x < end[0] && p.y >= begin[1] && p.y < end[1] && p.z >= begin[2] && p.z < end[2];
  }
  WalkTarget target() const {
    std::array<std::uint32_t, 3> centre;
    std::array<float, 3> half;
    for (std::size_t a = 0; a < 3; ++a) {
      centre[a] = begin[a] + (end[a] - begin[a]) / 2;
      half[a] = std::nextafter(static_cast<float>(end[a] - centre[a]), 1e30f);
    }
    return {centre[0], centre[1], centre[2], half[0], half[1], half[2]};
  }
};

const std::vector<Part>& parts() {
  static const std::vector<Part> kParts{{{0, 0, 0}, {0x30000000u, ~0u, ~0u}},
                                        {{0x12345678u, 0x23456789u, 0xe0000000u}, {0x22345678u, 0x53456789u, ~0u}},
                                        {{0xf0000000u, 0xf0000000u, 0xf0000000u}, {~0u, ~0u, ~0u}},
                                        {{0x48000000u, 0, 0}, {0x60000000u, 0x20000000u, ~0u}}};
  return kParts;
}

WalkOptions walk_with_cutoff() {
  WalkOptions walk;
  walk.theta = 0.6f;
  walk.r_cut = 0.07f;
  return walk;
}

struct Selected : testing::TreeSet {
  LetSelection selection;
  std::vector<BlockCounts> counts;
  Selected(const Set& set, const std::vector<WalkTarget>& targets, int whole_cells) : TreeSet(set, 64, 3) {
    counts = select_essential(stream, tree, let_rule(walk_with_cutoff(), {}, whole_cells), targets, selection);
  }
  std::size_t closed() const {
    const auto shapes = selection.shapes.download(stream);
    return static_cast<std::size_t>(std::count(shapes.begin(), shapes.end(), kClosedCell));
  }
};

TEST(WholeCells, ASelectionOfThemIsAllTheirParticlesAndNoMultipoles) {
  const Set set = set_across_edges(8000, 3);
  const int level = whole_cell_level(set.size(), 3);
  std::vector<WalkTarget> plain, grown;
  for (const Part& part : parts()) {
    plain.push_back(part.target());
    grown.push_back(grow_to_whole_cells(part.target(), walk_with_cutoff().r_cut, level));
  }
  EXPECT_GT(Selected(set, plain, 0).closed(), 0u) << "else this shows nothing";
  const Selected s(set, grown, level);
  EXPECT_EQ(s.closed(), 0u);
  const Set sorted = s.particles.source.download(s.stream);
  const auto sent = s.selection.particles.download(s.stream);
  std::size_t begin = 0, beyond = 0;
  for (std::size_t t = 0; t < grown.size(); ++t) {
    const auto from = sent.begin() + static_cast<std::ptrdiff_t>(begin);
    begin += s.counts[t].particles;
    const std::set<std::uint32_t> those(from, sent.begin() + static_cast<std::ptrdiff_t>(begin));
    EXPECT_EQ(those.size(), s.counts[t].particles) << "none twice";
    for (std::uint32_t i = 0; i < sorted.size(); ++i) {
      if (holds(grown[t], sorted[i])) {
        EXPECT_TRUE(those.contains(i)) << "target " << t << " particle " << i;
      } else {
        beyond += those.contains(i) ? 1 : 0;
      }
    }
    EXPECT_LT(those.size(), sorted.size());
  }
  EXPECT_EQ(begin, sent.size());
  EXPECT_LT(beyond, sent.size() / 4) << "of leaves at the ends";
}

// A tree of sources of which the first are own, and the lists of the groups with own ones: what they name, bit by bit.
struct Ghosts {
  const Stream& stream = test::test_stream();
  JoinedSources sources;
  Octree tree;
  DeviceBuffer<Group> groups{"groups"}, own_groups{"own"};
  std::vector<std::vector<std::array<std::uint32_t, 10>>> lists;

  Ghosts(Set own, const Set& others, int level) {
    testing::sort_by_key(own);
    DeviceBuffer<SourceParticle> a("own"), b("others");
    a.upload(stream, own);
    b.upload(stream, others);
    sources.join(stream, a.data(), own.size(), b.data(), others.size());
    build_octree(stream, sources.keys(), 16, level, tree);
    sweep_octree(stream, sources.data(), tree);
    open_coarse_cells(stream, level, tree);
    make_groups(stream, tree, sources.data(), 64, level, groups);
    DeviceBuffer<std::uint32_t> before("before");
    sources.count_own(stream, before);
    keep_own_groups(stream, before, groups, own_groups);
    find_lists();
  }
  void find_lists() {
    Set all(sources.size());
    copy_to_host(stream, all.data(), sources.data(), all.size() * sizeof(SourceParticle));
    const auto moments = tree.moments.download(stream);
    const auto first = tree.first.download(stream), count = tree.count.download(stream);
    InteractionLists found;
    const auto n = static_cast<std::uint32_t>(groups.size());
    WalkOptions walk = walk_with_cutoff();
    walk.one_by_one = true;  // the same order of words on all machines
    walk_tree(stream, tree, walk, {groups.data(), n, nullptr, 0, n, false}, found);
    const auto words = testing::words_of(stream, found);
    const auto ranges = groups.download(stream);
    const auto name = [&](std::uint32_t begin, std::uint32_t end, auto& list) {
      for (std::uint32_t i = begin; i < end; ++i)
        list.push_back({all[i].x, all[i].y, all[i].z, std::bit_cast<std::uint32_t>(all[i].mass)});
    };
    for (std::uint32_t g = 0; g < n; ++g) {
      auto& list = lists.emplace_back();
      name(ranges[g].first, ranges[g].first + ranges[g].count, list);
      for (const std::uint32_t c : words[g].cells)
        list.push_back(std::bit_cast<std::array<std::uint32_t, 10>>(moments[c]));
      for (const std::uint32_t c : words[g].leaves) name(first[c], first[c] + count[c], list);
    }
  }
};

TEST(WholeCells, WithThemTheListsAreThoseOfOneTreeOverAll) {
  for (const unsigned seed : {4u, 5u})
    for (const int finer : {0, 1}) {
      const Set set = set_across_edges(8000, seed);
      const int level = whole_cell_level(set.size(), 3) + finer;
      const Ghosts one(set, {}, level);
      const std::set<std::vector<std::array<std::uint32_t, 10>>> all(one.lists.begin(), one.lists.end());
      for (const Part& part : parts()) {
        Set own, others, ghosts;
        for (const SourceParticle& p : set) (part.has(p) ? own : others).push_back(p);
        const Selected s(others, {grow_to_whole_cells(part.target(), walk_with_cutoff().r_cut, level)}, level);
        const Set sorted = s.particles.source.download(s.stream);
        for (const std::uint32_t i : s.selection.particles.download(s.stream)) ghosts.push_back(sorted[i]);
        ASSERT_GT(own.size(), 0u);
        ASSERT_LT(own.size() + ghosts.size(), set.size());
        const Ghosts mine(own, ghosts, level);
        std::size_t alike = 0, members = 0;
        for (const auto& list : mine.lists) alike += all.contains(list) ? 1 : 0;
        EXPECT_EQ(alike, mine.lists.size());
        for (const Group& group : mine.own_groups.download(mine.stream)) members += group.count;
        EXPECT_EQ(members, own.size());
      }
    }
}

}  // namespace
}  // namespace maki
