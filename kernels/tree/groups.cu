#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/tree/octree.hpp"

namespace maki {
namespace {

struct GroupRange {
  std::uint32_t first, count;
};

// Walks over the groups that one large cell makes of its children, in Morton order: runs of small siblings that
// together hold at most group_size, and pieces of large leaves. Children that are large and divided make their own.
struct ChildGroups {
  const std::uint32_t* first;
  const std::uint32_t* count;
  const std::uint32_t* first_child;
  const std::uint8_t* child_count;
  std::uint32_t group_size;

  template <class Emit>
  MAKI_HD void pieces(std::uint32_t begin, std::uint32_t n, Emit& emit) const {
    for (std::uint32_t done = 0; done < n; done += group_size)
      emit(GroupRange{begin + done, n - done < group_size ? n - done : group_size});
  }

  template <class Emit>
  MAKI_HD void operator()(std::uint32_t cell, bool children_may_be_groups, Emit& emit) const {
    GroupRange run{0, 0};
    for (std::uint32_t c = first_child[cell]; c < first_child[cell] + child_count[cell]; ++c) {
      const bool small = children_may_be_groups && count[c] <= group_size;
      if (run.count > 0 && (!small || run.count + count[c] > group_size)) {
        emit(run);
        run.count = 0;
      }
      if (small) {
        if (run.count == 0) run.first = first[c];
        run.count += count[c];
      } else if (child_count[c] == 0) {
        pieces(first[c], count[c], emit);
      }
    }
    if (run.count > 0) emit(run);
  }
};

struct Counter {
  std::uint32_t n = 0;
  MAKI_HD void operator()(const GroupRange&) { ++n; }
};

struct Writer {
  std::uint64_t* keys;
  std::uint32_t* counts;
  std::uint32_t next;
  MAKI_HD void operator()(const GroupRange& r) {
    keys[next] = r.first;
    counts[next++] = r.count;
  }
};

// A cell makes groups when it is divided and too large, or too high in the tree, to be in one itself.
struct CountGroups {
  ChildGroups make;
  std::uint32_t level_begin;
  bool too_high, children_may_be_groups;
  std::uint32_t* groups;
  MAKI_HD bool large(std::size_t cell) const {
    return make.child_count[cell] > 0 && (too_high || make.count[cell] > make.group_size);
  }
  MAKI_HD void operator()(std::size_t i) const {
    const auto cell = static_cast<std::uint32_t>(level_begin + i);
    Counter counter;
    if (large(cell)) make(cell, children_may_be_groups, counter);
    groups[cell] = counter.n;
  }
};

struct EmitGroups {
  CountGroups from;
  const std::uint32_t* offset;
  std::uint64_t* keys;
  std::uint32_t* counts;
  MAKI_HD void operator()(std::size_t i) const {
    const auto cell = static_cast<std::uint32_t>(from.level_begin + i);
    Writer writer{keys, counts, offset[cell]};
    if (from.large(cell)) from.make(cell, from.children_may_be_groups, writer);
  }
};

struct StoreGroup {
  const std::uint64_t* keys;
  const std::uint32_t* counts;
  Group* groups;
  MAKI_HD void operator()(std::size_t i) const {
    groups[i].first = static_cast<std::uint32_t>(keys[i]);
    groups[i].count = counts[i];
  }
};

struct StoreWhole {  // the root alone: as one group, or in pieces where it is a large leaf
  std::uint32_t n, group_size;
  Group* groups;
  MAKI_HD void operator()(std::size_t i) const {
    const auto first = static_cast<std::uint32_t>(i) * group_size;
    groups[i].first = first;
    groups[i].count = n - first < group_size ? n - first : group_size;
  }
};

}  // namespace

void make_groups(const Stream& stream, const Octree& tree, const SourceParticle* particles, std::uint32_t group_size,
                 int min_level, std::uint32_t n, DeviceBuffer<Group>& groups) {
  if (tree.cells == 1 || (min_level == 0 && n <= group_size)) {
    groups.resize((n + group_size - 1) / group_size, 0.2);
    launch(stream, "groups_whole", groups.size(), StoreWhole{n, group_size, groups.data()});
    return refit_groups(stream, particles, groups);
  }
  const ChildGroups make{tree.first.data(), tree.count.data(), tree.first_child.data(), tree.child_count.data(),
                         group_size};
  DeviceBuffer<std::uint32_t> made("tree.scratch", tree.cells), offset("tree.scratch", tree.cells + 1);
  const auto levels = static_cast<int>(tree.level_begin.size()) - 1;
  const auto of_level = [&](int level) {
    return CountGroups{make, tree.level_begin[static_cast<std::size_t>(level)], level < min_level,
                       level + 1 >= min_level, made.data()};
  };
  const auto cells_of = [&](int level) {
    const auto l = static_cast<std::size_t>(level);
    return tree.level_begin[l + 1] - tree.level_begin[l];
  };
  for (int level = 0; level < levels; ++level) launch(stream, "groups_count", cells_of(level), of_level(level));
  exclusive_scan(stream, made.data(), offset.data(), tree.cells);
  std::uint32_t total = 0;
  copy_to_host(stream, &total, offset.data() + tree.cells, sizeof total);
  DeviceBuffer<std::uint64_t> keys("tree.scratch", total);
  DeviceBuffer<std::uint32_t> counts("tree.scratch", total);
  for (int level = 0; level < levels; ++level)
    launch(stream, "groups_emit", cells_of(level),
           EmitGroups{of_level(level), offset.data(), keys.data(), counts.data()});
  sort_by_key(stream, keys, counts);  // Morton order: neighbours in time are neighbours in memory
  groups.resize(total, 0.2);
  launch(stream, "groups_store", total, StoreGroup{keys.data(), counts.data(), groups.data()});
  refit_groups(stream, particles, groups);
}

}  // namespace maki
