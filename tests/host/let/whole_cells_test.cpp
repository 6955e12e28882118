#include "host/let/local_essential_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "host/let/forest.hpp"
#include "kernels/tree/octree.hpp"
#include "tests/kernels/tree/tree_set.hpp"

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

// Clusters that the edges of the box cut, and some particles everywhere.
Set set_across_edges(std::size_t n, unsigned seed) {
  Set set = testing::clustered_set(n, seed);
  for (SourceParticle& p : set) p.x += 0x70000000u, p.y += 0x90000000u, p.z += 0x84000000u;
  const Set everywhere = testing::uniform_set(n / 8, seed);
  std::copy(everywhere.begin(), everywhere.end(), set.begin());
  return set;
}

// Parts of the box, as domains of ranks may be.
std::vector<WalkTarget> parts() {
  using Corner = std::array<std::uint32_t, 3>;
  const std::pair<Corner, Corner> kParts[] = {{{0, 0, 0}, {0x30000000u, ~0u, ~0u}},
                                              {{0x12345678u, 0x23456789u, 0xe0000000u},
                                               {0x22345678u, 0x53456789u, ~0u}},
                                              {{0xf0000000u, 0xf0000000u, 0xf0000000u}, {~0u, ~0u, ~0u}},
                                              {{0x48000000u, 0, 0}, {0x60000000u, 0x20000000u, ~0u}}};
  std::vector<WalkTarget> targets;
  for (const auto& [begin, end] : kParts) {
    const auto centre = [&](std::size_t a) { return begin[a] + (end[a] - begin[a]) / 2; };
    const auto half = [&](std::size_t a) { return std::nextafter(static_cast<float>(end[a] - centre(a)), 1e30f); };
    targets.push_back({centre(0), centre(1), centre(2), half(0), half(1), half(2)});
  }
  return targets;
}

constexpr WalkOptions kWalk{.theta = 0.6f, .r_cut = 0.07f};

struct Selected : testing::TreeSet {
  LetSelection selection;
  std::vector<BlockCounts> counts;
  Selected(const Set& set, const std::vector<WalkTarget>& targets, int whole_cells) : TreeSet(set, 64, 3) {
    counts = select_essential(stream, tree, let_rule(kWalk, {}, whole_cells), targets, selection);
  }
  std::size_t closed() const {
    const auto shapes = selection.shapes.download(stream);
    return static_cast<std::size_t>(std::count(shapes.begin(), shapes.end(), kClosedCell));
  }
};

TEST(WholeCells, ASelectionOfThemIsAllTheirParticlesAndNoMultipoles) {
  const Set set = set_across_edges(8000, 3);
  const int level = whole_cell_level(set.size(), 3);
  std::vector<WalkTarget> grown;
  for (const WalkTarget& part : parts()) grown.push_back(grow_to_whole_cells(part, kWalk.r_cut, level));
  EXPECT_GT(Selected(set, parts(), 0).closed(), 0u) << "else this shows nothing";
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

}  // namespace
}  // namespace maki
