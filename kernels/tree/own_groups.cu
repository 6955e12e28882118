#include "kernels/tree/own_groups.hpp"

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"

namespace maki {
namespace {

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
    own[i] = {first, own_before[g.first + g.count] - first, 0, 0, 0, 0, 0, 0};
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
