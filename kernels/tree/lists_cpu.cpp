#include <algorithm>

#include "kernels/tree/walk.hpp"

namespace maki {

void flag_stale_groups(const Stream&, Octree& tree, const StaleCriterion& criterion, const ListView& lists,
                       std::uint32_t* flags) {
  const CellGeometryView g = tree.geometry.view();
  const std::uint32_t* const count = tree.count.data();
#pragma omp parallel for schedule(dynamic, 64)
  for (std::size_t i = 0; i < lists.count; ++i) {
    const std::size_t group = lists.selected ? lists.selected[i] : i;
    const WalkTarget target = walk_target(lists.groups[group]);
    const ListRange range = lists.ranges[group];
    const std::uint32_t* words = lists.words + range.begin;
    flags[i] = std::any_of(words, words + range.cells, [&](std::uint32_t c) {
      return criterion.looks_at(count[c]) && criterion.has_come_near(target, g, c);
    });
  }
}

void add_list_statistics(const Stream& stream, const Octree& tree, const ListView& lists, ListStatistics* total) {
  total->add(list_statistics(stream, tree, lists));
}

ListStatistics list_statistics(const Stream&, const Octree& tree, const ListView& lists) {
  ListStatistics total;
#pragma omp parallel
  {
    ListStatistics mine;
#pragma omp for schedule(dynamic, 64) nowait
    for (std::uint32_t i = 0; i < lists.count; ++i) {
      const std::uint32_t g = lists.selected ? lists.selected[i] : i;
      const ListRange range = lists.ranges[g];
      const std::uint32_t* leaves = lists.words + range.begin + range.cells;
      std::uint64_t particles = 0;
      for (std::uint32_t k = 0; k < range.leaves; ++k) particles += tree.count.data()[leaves[k]];
      mine.add(particles, range, lists.groups[g].count);
    }
#pragma omp critical
    total.add(mine);
  }
  return total;
}

}  // namespace maki
