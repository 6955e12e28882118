// Kept lists whose stale cells are opened where they stand.
#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/tree/walk.hpp"

namespace maki {
namespace {

struct CountWords {
  ListRange found{0, 0, 0};
  MAKI_HD void cell(std::uint32_t) { ++found.cells; }
  MAKI_HD void leaf(std::uint32_t) { ++found.leaves; }
};

struct WriteWords {
  std::uint32_t* cells;
  std::uint32_t* leaves;
  MAKI_HD void cell(std::uint32_t c) { *cells++ = c; }
  MAKI_HD void leaf(std::uint32_t c) { *leaves++ = c; }
};

// Goes through a group's kept list, and from cells that have come near down to those that serve in their place. What is
// taken stands in the order of the old list, which is the same whatever other cells there are.
struct Reopened {
  CellGeometryView g;
  const std::uint32_t* count;
  const std::uint32_t* first_child;
  const std::uint8_t* child_count;
  StaleCriterion stale;
  std::uint32_t small_cell;

  MAKI_HD bool is_far(const WalkTarget& t, std::uint32_t c) const {
    const float gap = point_gap_squared(t, axis_distance(g.comx[c], t.x), axis_distance(g.comy[c], t.y),
                                        axis_distance(g.comz[c], t.z));
    return far_enough(gap, opening_distance(stale.rule, t, g.size_of(c)));
  }

  // The decisions of a walk.
  template <class Take>
  MAKI_HD void children(const WalkTarget& t, std::uint32_t top, Take& take) const {
    std::uint32_t waiting[8 * kWalkLevels];  // every level leaves at most seven siblings
    int depth = 0;
    waiting[depth++] = top;
    while (depth > 0) {
      const std::uint32_t parent = waiting[--depth], begin = first_child[parent];
      for (std::uint32_t c = begin; c < begin + child_count[parent]; ++c) {
        const bool far = is_far(t, c);
        if (count[c] == kClosedCell || (far && count[c] > small_cell))
          take.cell(c);
        else if (far || child_count[c] == 0)
          take.leaf(c);
        else
          waiting[depth++] = c;
      }
    }
  }

  template <class Take>
  MAKI_HD void operator()(const Group& group, const std::uint32_t* words, const ListRange& range, Take& take) const {
    const WalkTarget t = walk_target(group);
    for (std::uint32_t k = range.cells; k < range.cells + range.leaves; ++k) take.leaf(words[k]);
    for (std::uint32_t k = 0; k < range.cells; ++k) {
      const std::uint32_t c = words[k];
      if (!stale.looks_at(count[c]) || !stale.has_come_near(t, g, c))
        take.cell(c);
      else if (child_count[c] == 0)
        take.leaf(c);
      else
        children(t, c, take);
    }
  }
};

// Items are places in `stale`, which names places in `lists`.
struct StaleLists {
  Reopened reopened;
  ListView lists;
  const std::uint32_t* stale;

  MAKI_HD std::uint32_t group(std::size_t item) const {
    return lists.selected ? lists.selected[stale[item]] : stale[item];
  }
  template <class Take>
  MAKI_HD void operator()(std::uint32_t group, Take& take) const {
    const ListRange range = lists.ranges[group];
    reopened(lists.groups[group], lists.words + range.begin, range, take);
  }
};

struct CountReopened {
  StaleLists lists;
  ListRange* found;
  std::uint32_t* words;
  MAKI_HD void operator()(std::size_t i) const {
    CountWords take;
    lists(lists.group(i), take);
    found[i] = take.found;
    words[i] = take.found.cells + take.found.leaves;
  }
};

struct WriteReopened {
  StaleLists lists;
  const ListRange* found;
  const std::uint64_t* before;  // words of the items before
  std::uint32_t* words;
  std::uint64_t used;
  ListRange* ranges;
  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t group = lists.group(i);
    const ListRange range{used + before[i], found[i].cells, found[i].leaves};
    WriteWords take{words + range.begin, words + range.begin + range.cells};
    lists(group, take);
    ranges[group] = range;
  }
};

}  // namespace

void reopen_lists(const Stream& stream, Octree& tree, const WalkOptions& options, float margin, const ListView& view,
                  const DeviceBuffer<std::uint32_t>& stale, InteractionLists& lists) {
  const std::size_t n = stale.size();
  const Reopened reopened{tree.geometry.view(),
                          tree.count.data(),
                          tree.first_child.data(),
                          tree.child_count.data(),
                          {options.rule(), margin, StaleCells::kDivisible},
                          options.small_cell};
  DeviceBuffer<ListRange> found("lists.scratch", n);
  DeviceBuffer<std::uint32_t> words("lists.scratch", n);
  DeviceBuffer<std::uint64_t> before("lists.scratch", n + 1);
  launch(stream, "reopen_count", n, CountReopened{{reopened, view, stale.data()}, found.data(), words.data()});
  exclusive_scan(stream, words.data(), before.data(), n);
  std::uint64_t total = 0;
  copy_to_host(stream, &total, before.data() + n, sizeof total);
  lists.reserve(stream, lists.used + total);
  lists.words.resize(lists.used + total);
  ListView old = view;
  old.words = lists.words.data();  // they may have moved
  launch(stream, "reopen_write", n,
         WriteReopened{{reopened, old, stale.data()},
                       found.data(),
                       before.data(),
                       lists.words.data(),
                       lists.used,
                       lists.ranges.data()});
  lists.used += total;
}

}  // namespace maki
