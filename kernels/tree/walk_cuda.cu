// First CUDA walk: one thread a group, two passes (count, then write).
#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/tree/walk.hpp"

namespace maki {
namespace {

struct WalkGroup {
  CellGeometryView g;
  const std::uint32_t* count;
  const std::uint32_t* first_child;
  const std::uint8_t* child_count;
  const Group* groups;
  const std::uint32_t* selected;
  std::uint32_t begin;
  float inverse_theta, r_cut_squared;  // r_cut_squared: 0 without a cutoff
  std::uint32_t small_cell;
  ListRange* ranges;
  std::uint32_t* totals;         // pass 1: words of each item
  const std::uint64_t* offsets;  // pass 2: scan of totals
  std::uint64_t base;
  std::uint32_t* words;          // nullptr in pass 1

  MAKI_HD bool outside(const Group& t, std::uint32_t c) const {
    const float x = gap(g.x[c], t.x, t.hx + g.hx[c]), y = gap(g.y[c], t.y, t.hy + g.hy[c]),
                z = gap(g.z[c], t.z, t.hz + g.hz[c]);
    return r_cut_squared > 0 && x * x + y * y + z * z >= r_cut_squared;
  }
  MAKI_HD bool far(const Group& t, std::uint32_t c) const {
    const float x = gap(g.comx[c], t.x, t.hx), y = gap(g.comy[c], t.y, t.hy), z = gap(g.comz[c], t.z, t.hz);
    const float open = g.size[c] * inverse_theta + g.offset[c];
    return x * x + y * y + z * z > open * open;
  }

  MAKI_HD void operator()(std::size_t item) const {
    const std::uint32_t index = selected ? selected[item] : begin + static_cast<std::uint32_t>(item);
    const Group target = groups[index];
    std::uint32_t stack[8 * 22];
    int depth = 0;
    std::uint32_t cells = 0, leaves = 0;
    std::uint32_t* cell_out = words ? words + base + offsets[item] : nullptr;
    std::uint32_t* leaf_out = words ? cell_out + ranges[index].cells : nullptr;
    if (child_count[0] == 0) {
      if (words) leaf_out[0] = 0;
      leaves = 1;
    } else {
      stack[depth++] = 0;
    }
    while (depth > 0) {
      const std::uint32_t parent = stack[--depth];
      for (std::uint32_t c = first_child[parent]; c < first_child[parent] + child_count[parent]; ++c) {
        if (outside(target, c)) continue;
        const bool multipole = far(target, c);
        if (multipole && count[c] > small_cell) {
          if (words) cell_out[cells] = c;
          ++cells;
        } else if (multipole || child_count[c] == 0) {
          if (words) leaf_out[leaves] = c;
          ++leaves;
        } else {
          stack[depth++] = c;
        }
      }
    }
    if (!words) {
      ranges[index] = {0, cells, leaves};
      totals[item] = cells + leaves;
    } else {
      ranges[index].begin = base + offsets[item];
    }
  }
};

}  // namespace

void walk_tree(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
               InteractionLists& lists) {
  if (lists.ranges.size() != request.group_count) lists.ranges.resize(request.group_count, 0.2);
  if (!request.append) lists.used = 0;
  DeviceBuffer<std::uint32_t> totals("lists.scratch", request.count);
  DeviceBuffer<std::uint64_t> offsets("lists.scratch", request.count + 1);
  WalkGroup pass{tree.geometry.view(), tree.count.data(), tree.first_child.data(), tree.child_count.data(),
                 request.groups, request.selected, request.begin, 1.0f / options.theta,
                 options.r_cut * options.r_cut, options.small_cell, lists.ranges.data(), totals.data(), offsets.data(),
                 lists.used, nullptr};
  launch(stream, "walk_count", request.count, pass);
  exclusive_scan(stream, totals.data(), offsets.data(), request.count);
  std::uint64_t added = 0;
  copy_to_host(stream, &added, offsets.data() + request.count, sizeof added);
  const std::uint64_t wanted = lists.used + added;
  if (wanted > lists.words.capacity()) {
    DeviceBuffer<std::uint32_t> larger("lists.words");
    larger.resize(wanted, 0.15);
    copy_on_device(stream, larger.data(), lists.words.data(), lists.used * sizeof(std::uint32_t));
    stream.synchronize();
    lists.words.swap(larger);
  } else {
    lists.words.resize(wanted);
  }
  pass.words = lists.words.data();
  launch(stream, "walk_write", request.count, pass);
  lists.used = wanted;
}

}  // namespace maki
