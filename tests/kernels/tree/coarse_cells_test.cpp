// Cells above the level of whole cells: cubes, never multipoles.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"
#include "tests/kernels/tree/sets.hpp"
#include "tests/kernels/tree/tree_set.hpp"

namespace maki {
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
