// Interaction lists on both backends: memory and its estimates, and kept lists whose stale cells are opened in place.
#include <cmath>

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/tree/walk.hpp"

namespace maki {

double cutoff_list_bytes(double reach, double group_size) {
  constexpr double filled = 0.7, clustered = 3;  // part of a group; words relative to a uniform set
  const double members = filled * group_size, side = std::cbrt(members) + 2 * reach;
  return clustered * 4 * side * side * side / kParticlesALeaf / members;
}

double isolated_list_bytes(double theta, double group_size) {
  return 125 * std::pow(0.5 / theta, 1.35) * std::pow(group_size / 64, -0.75);
}

void InteractionLists::reserve(const Stream& stream, std::uint64_t wanted) {
  if (wanted <= words.capacity()) return;
  constexpr double headroom = 0.15;
  if (used == 0) return words.resize(wanted, headroom);  // old and new words need not coexist
  DeviceBuffer<std::uint32_t> larger(words.name());
  larger.resize(wanted, headroom);
  copy_on_device(stream, larger.data(), words.data(), used * sizeof(std::uint32_t));
  stream.synchronize();  // the old words are freed here
  words.swap(larger);
}

void InteractionLists::begin_walk(const Stream& stream, const WalkRequest& request) {
  if (ranges.size() != request.group_count) ranges.resize(request.group_count, 0.2);
  if (request.append) return;
  used = 0;
  reserve(stream, static_cast<std::uint64_t>(words_a_group * request.count));
}

std::uint32_t find_stale_groups(const Stream& stream, Octree& tree, const StaleCriterion& criterion,
                                const ListView& lists, DeviceBuffer<std::uint32_t>& stale) {
  DeviceBuffer<std::uint32_t> flags("lists.scratch", lists.count);
  flag_stale_groups(stream, tree, criterion, lists, flags.data());
  return select_flagged(stream, flags.data(), lists.count, stale);
}

void InteractionLists::end_walk(const WalkRequest& request, std::uint64_t total) {
  used = total;
  words.resize(total);
  if (!request.append && request.count > 0) words_a_group = static_cast<double>(total) / request.count;
}

// Kept lists whose stale cells are opened in place.

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

MAKI_HD std::uint32_t group_at(const ListView& lists, std::size_t place) {
  return lists.selected ? lists.selected[place] : static_cast<std::uint32_t>(place);
}

// Walks a group's kept list, and from cells that have come near down to the cells that replace them. The new words
// follow the order of the old list, which is independent of cells that the list does not name.
struct Reopened : TreeTopology {
  CellGeometryView g;
  StaleCriterion stale;
  std::uint32_t small_cell;

  MAKI_HD bool is_far(const WalkTarget& t, std::uint32_t c) const {
    return far_enough(g.centre_gap_squared(t, c), opening_distance(stale.rule, t, g.size_of(c)));
  }

  // The decisions of a walk without a cutoff.
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
  MAKI_HD void operator()(const ListView& lists, std::size_t place, Take& take) const {
    const std::uint32_t group = group_at(lists, place);
    const WalkTarget t = walk_target(lists.groups[group]);
    const ListRange range = lists.ranges[group];
    const std::uint32_t* const words = lists.words + range.begin;
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

// Items are places in `lists`.
struct CountReopened {
  Reopened reopened;
  ListView lists;
  const std::uint32_t* stale;  // 1, or 0
  ListRange* found;
  std::uint32_t* words;  // 0 where the list stays as it is
  MAKI_HD void operator()(std::size_t i) const {
    words[i] = 0;
    if (stale[i] == 0) return;
    CountWords take;
    reopened(lists, i, take);
    found[i] = take.found;
    words[i] = take.found.cells + take.found.leaves;
  }
};

struct WriteReopened {
  Reopened reopened;
  ListView lists;
  const std::uint32_t* stale;
  const ListRange* found;
  const std::uint64_t* offset;  // words of the items before
  std::uint32_t* words;
  std::uint64_t used, capacity;
  const ReopenRecord* before;  // or null
  ListRange* ranges;
  MAKI_HD void operator()(std::size_t i) const {
    if (stale[i] == 0) return;
    const std::uint64_t begin = used + (before ? before->words : 0) + offset[i];
    const ListRange range{begin, found[i].cells, found[i].leaves};
    if (begin + range.cells + range.leaves > capacity) return;
    WriteWords take{words + range.begin, words + range.begin + range.cells};
    reopened(lists, i, take);
    ranges[group_at(lists, i)] = range;
  }
};

}  // namespace

void queue_reopen(const Stream& stream, Octree& tree, const Reopening& what, InteractionLists& lists,
                  const ReopenRecord* before, ReopenRecord* record) {
  const ListView& view = what.view;
  const std::size_t n = view.count;
  const StaleCriterion criterion{what.options.rule(), what.margin, StaleCells::kDivisible};
  const Reopened reopened{tree.topology(), tree.geometry.view(), criterion, what.options.small_cell};
  DeviceBuffer<ListRange> found("lists.scratch", n);
  DeviceBuffer<std::uint32_t> stale("lists.scratch", n), words("lists.scratch", n);
  DeviceBuffer<std::uint64_t> offset("lists.scratch", n + 1);
  flag_stale_groups(stream, tree, criterion, view, stale.data());
  launch(stream, "reopen_count", n, CountReopened{reopened, view, stale.data(), found.data(), words.data()});
  exclusive_scan(stream, words.data(), offset.data(), n);
  lists.words.resize(lists.words.capacity());  // all of it may be written
  launch(stream, "reopen_write", n,
         WriteReopened{reopened, view, stale.data(), found.data(), offset.data(), lists.words.data(), lists.used,
                       lists.words.capacity(), before, lists.ranges.data()});
  copy_on_device(stream, &record->words, offset.data() + n, sizeof record->words);
}

bool finish_reopen(const ReopenRecord& record, InteractionLists& lists) {
  const std::uint64_t room = lists.words.capacity() - lists.used;
  lists.used += record.words < room ? record.words : room;
  return record.words <= room;
}

void reopen_lists(const Stream& stream, Octree& tree, Reopening what, InteractionLists& lists) {
  DeviceBuffer<ReopenRecord> record("lists.scratch", 1);
  for (;;) {
    record.fill_zero(stream);
    what.view.words = lists.words.data();  // they may have moved
    queue_reopen(stream, tree, what, lists, nullptr, record.data());
    ReopenRecord found;
    copy_to_host(stream, &found, record.data(), sizeof found);
    if (finish_reopen(found, lists)) return;
    lists.reserve(stream, lists.used + found.words);
  }
}

}  // namespace maki
