#include <algorithm>

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/tree/octree.hpp"

namespace maki {
namespace {

struct GroupRange {
  std::uint32_t first, count;
};

// Visits the groups that one large cell makes of its children, in Morton order: runs of small siblings that together
// hold at most group_size, and pieces of large leaves. Large divided children make their own groups.
struct ChildGroups : TreeTopology {
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

// Groups cover all particles in Morton order, so their begins define them.
struct MarkBegin {
  std::uint8_t* begins;  // by particle: 1 where a group begins
  MAKI_HD void operator()(const GroupRange& r) { begins[r.first] = 1; }
};

// A cell makes groups if it is divided, and too large, or too high in the tree, to be in a group itself.
struct MarkGroups {
  ChildGroups make;
  // The first cells of level min_level - 1, whose children may be groups, and of min_level.
  std::uint32_t deep, below_deep;
  MarkBegin mark;
  MAKI_HD void operator()(std::size_t i) const {
    const auto cell = static_cast<std::uint32_t>(i);
    if (make.child_count[cell] == 0 || (cell >= below_deep && make.count[cell] <= make.group_size)) return;
    MarkBegin emit = mark;
    make(cell, cell >= deep, emit);
  }
};

// The marks of 64 particles, as eight words.
constexpr std::size_t kMarks = 64;

struct CountMarks {
  const std::uint64_t* marks;
  std::uint32_t* groups;
  MAKI_HD void operator()(std::size_t i) const {
    std::uint64_t sum = 0;  // at most 8 in a byte
    for (std::size_t k = 0; k < 8; ++k) sum += marks[8 * i + k];
    groups[i] = static_cast<std::uint32_t>(sum * 0x0101010101010101ull >> 56);
  }
};

struct StoreFirst {
  const std::uint64_t* marks;
  const std::uint32_t* offset;
  Group* groups;
  MAKI_HD void operator()(std::size_t i) const {
    std::uint32_t next = offset[i];
    for (std::size_t k = 0; k < 8; ++k) {
      const std::uint64_t word = marks[8 * i + k];
      if (word == 0) continue;
      for (unsigned b = 0; b < 8; ++b)
        if (word >> 8 * b & 1u) groups[next++].first = static_cast<std::uint32_t>(kMarks * i + 8 * k + b);
    }
  }
};

struct StoreCount {
  Group* groups;
  std::uint32_t total, n;
  MAKI_HD void operator()(std::size_t i) const {
    groups[i].count = (i + 1 < total ? groups[i + 1].first : n) - groups[i].first;
    groups[i].error_scale = 1;
  }
};

struct StoreWhole {  // the root alone: as one group, or in pieces where it is a large leaf
  std::uint32_t n, group_size;
  Group* groups;
  MAKI_HD void operator()(std::size_t i) const {
    const auto first = static_cast<std::uint32_t>(i) * group_size;
    groups[i].first = first;
    groups[i].count = n - first < group_size ? n - first : group_size;
    groups[i].error_scale = 1;
  }
};

}  // namespace

void make_groups(const Stream& stream, const Octree& tree, const SourceParticle* particles, std::uint32_t group_size,
                 int min_level, DeviceBuffer<Group>& groups) {
  const std::uint32_t n = tree.particles;
  if (tree.cells == 1 || (min_level == 0 && n <= group_size)) {
    groups.resize((n + group_size - 1) / group_size, 0.1);
    launch(stream, "groups_whole", groups.size(), StoreWhole{n, group_size, groups.data()});
    return refit_groups(stream, particles, groups);
  }
  const auto begin_of = [&](int level) {
    const auto l = static_cast<std::size_t>(std::max(level, 0));
    return l < tree.level_begin.size() ? tree.level_begin[l] : tree.cells;
  };
  const std::size_t stretches = (n + kMarks - 1) / kMarks;
  DeviceBuffer<std::uint64_t> marks("tree.scratch", 8 * stretches);
  DeviceBuffer<std::uint32_t> made("tree.scratch", stretches), offset("tree.scratch", stretches + 1);
  marks.fill_zero(stream);
  launch(stream, "groups_mark", tree.cells,
         MarkGroups{{tree.topology(), group_size},
                    begin_of(min_level - 1),
                    begin_of(min_level),
                    {reinterpret_cast<std::uint8_t*>(marks.data())}});
  launch(stream, "groups_count", stretches, CountMarks{marks.data(), made.data()});
  exclusive_scan(stream, made.data(), offset.data(), stretches);
  std::uint32_t total = 0;
  copy_to_host(stream, &total, offset.data() + stretches, sizeof total);
  groups.resize(total, 0.1);
  launch(stream, "groups_first", stretches, StoreFirst{marks.data(), offset.data(), groups.data()});
  launch(stream, "groups_members", total, StoreCount{groups.data(), total, n});
  refit_groups(stream, particles, groups);
}

namespace {

struct SetErrorScale {
  ConstVectorView a;
  float inverse_reference;  // before squares, which single precision may not hold in the user's units
  Group* groups;
  MAKI_HD float squared(std::uint32_t p) const {
    const float x = a.x[p] * inverse_reference, y = a.y[p] * inverse_reference, z = a.z[p] * inverse_reference;
    return x * x + y * y + z * z;
  }
  MAKI_HD void operator()(std::size_t i) const {
    Group& g = groups[i];
    float least = squared(g.first);
    for (std::uint32_t p = g.first + 1; p < g.first + g.count; ++p) least = squared(p) < least ? squared(p) : least;
    // kMostErrorScale where the ratio is infinite or not a number.
    const float scale = std::pow(1 / least, 0.1f);
    g.error_scale = scale < kLeastErrorScale ? kLeastErrorScale : scale < kMostErrorScale ? scale : kMostErrorScale;
  }
};

struct HasOwn {
  const Group* groups;
  const std::uint32_t* own_before;
  std::uint32_t* flag;
  MAKI_HD void operator()(std::size_t i) const {
    const Group g = groups[i];
    flag[i] = own_before[g.first + g.count] > own_before[g.first] ? 1 : 0;
  }
};

struct Keep {
  const Group* groups;
  const std::uint32_t* which;
  const std::uint32_t* own_before;
  Group* kept;
  Group* own;
  MAKI_HD void operator()(std::size_t i) const {
    const Group g = groups[which[i]];
    kept[i] = g;
    const std::uint32_t first = own_before[g.first];
    own[i] = {first, own_before[g.first + g.count] - first, 0, 0, 0, 0, 0, 0, g.error_scale};
  }
};

struct MarkCells {
  const std::uint32_t* own_before;
  const std::uint32_t* first;
  const std::uint32_t* count;
  std::uint8_t* has_ghosts;
  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t begin = first[i], end = begin + count[i];
    has_ghosts[i] = own_before[end] - own_before[begin] < count[i] ? 1 : 0;
  }
};

struct IsOuter {
  ListView lists;
  const Group* own;
  const std::uint8_t* has_ghosts;
  std::uint32_t* outer;
  std::uint32_t* inner;
  MAKI_HD void operator()(std::size_t i) const {
    const ListRange range = lists.ranges[i];
    const std::uint32_t* const words = lists.words + range.begin;
    bool ghosts = own[i].count < lists.groups[i].count;
    for (std::uint32_t w = 0; w < range.cells + range.leaves && !ghosts; ++w) ghosts = has_ghosts[words[w]] != 0;
    outer[i] = ghosts ? 1 : 0;
    inner[i] = ghosts ? 0 : 1;
  }
};

}  // namespace

void set_error_scales(const Stream& stream, ConstVectorView acceleration, float reference,
                      DeviceBuffer<Group>& groups) {
  launch(stream, "groups_error_scales", groups.size(), SetErrorScale{acceleration, 1 / reference, groups.data()});
}

void keep_own_groups(const Stream& stream, const DeviceBuffer<std::uint32_t>& own_before, DeviceBuffer<Group>& groups,
                     DeviceBuffer<Group>& own) {
  DeviceBuffer<std::uint32_t> flag("ghosts.scratch", groups.size()), which("ghosts.scratch");
  launch(stream, "ghosts_has_own", groups.size(), HasOwn{groups.data(), own_before.data(), flag.data()});
  const std::uint32_t n = select_flagged(stream, flag.data(), groups.size(), which);
  DeviceBuffer<Group> kept(groups.name(), n);
  own.resize(n, 0.1);
  launch(stream, "ghosts_keep", n, Keep{groups.data(), which.data(), own_before.data(), kept.data(), own.data()});
  groups.swap(kept);
}

void mark_ghost_cells(const Stream& stream, const DeviceBuffer<std::uint32_t>& own_before, const Octree& tree,
                      DeviceBuffer<std::uint8_t>& has_ghosts) {
  has_ghosts.resize(tree.cells, 0.1);
  launch(stream, "ghosts_cells", tree.cells,
         MarkCells{own_before.data(), tree.first.data(), tree.count.data(), has_ghosts.data()});
}

void split_groups(const Stream& stream, const ListView& lists, const DeviceBuffer<Group>& own,
                  const DeviceBuffer<std::uint8_t>& has_ghosts, DeviceBuffer<std::uint32_t>& inner,
                  DeviceBuffer<std::uint32_t>& outer) {
  DeviceBuffer<std::uint32_t> is_inner("ghosts.scratch", lists.count), is_outer("ghosts.scratch", lists.count);
  launch(stream, "ghosts_split", lists.count,
         IsOuter{lists, own.data(), has_ghosts.data(), is_outer.data(), is_inner.data()});
  select_flagged(stream, is_inner.data(), lists.count, inner);
  select_flagged(stream, is_outer.data(), lists.count, outer);
}

}  // namespace maki
