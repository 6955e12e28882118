#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"
#include "kernels/tree/walk.hpp"

namespace maki {
namespace {

struct IsStale {
  CellGeometryView g;
  const Group* groups;
  const ListRange* ranges;
  const std::uint32_t* words;
  float inverse_theta, keep;  // keep = 1 - margin
  std::uint32_t* stale;       // 0 or 1 by group

  MAKI_HD void operator()(std::size_t i) const {
    const Group t = groups[i];
    const ListRange r = ranges[i];
    std::uint32_t found = 0;
    for (std::uint32_t k = 0; k < r.cells; ++k) {
      const std::uint32_t c = words[r.begin + k];
      const float x = gap(g.comx[c], t.x, t.hx), y = gap(g.comy[c], t.y, t.hy), z = gap(g.comz[c], t.z, t.hz);
      const float open = keep * (g.size[c] * inverse_theta + g.offset[c]);
      found |= x * x + y * y + z * z < open * open ? 1u : 0u;
    }
    stale[i] = found;
  }
};

struct Compact {
  const std::uint32_t* flags;
  const std::uint32_t* offset;
  std::uint32_t* indices;
  MAKI_HD void operator()(std::size_t i) const {
    if (flags[i]) indices[offset[i]] = static_cast<std::uint32_t>(i);
  }
};

struct GroupStatistics {
  const std::uint32_t* cell_count;
  const Group* groups;
  const ListRange* ranges;
  const std::uint32_t* words;
  MAKI_HD ListStatistics operator()(std::size_t i) const {
    const ListRange r = ranges[i];
    std::uint64_t particles = 0;
    for (std::uint32_t k = 0; k < r.leaves; ++k) particles += cell_count[words[r.begin + r.cells + k]];
    ListStatistics s;
    s.particle_pairs = particles * groups[i].count;
    s.cell_pairs = static_cast<std::uint64_t>(r.cells) * groups[i].count;
    s.words = r.cells + r.leaves;
    s.longest = particles + r.cells;
    s.members = groups[i].count;
    return s;
  }
};

struct AddStatistics {
  MAKI_HD ListStatistics operator()(const ListStatistics& a, const ListStatistics& b) const {
    ListStatistics s;
    s.particle_pairs = a.particle_pairs + b.particle_pairs;
    s.cell_pairs = a.cell_pairs + b.cell_pairs;
    s.words = a.words + b.words;
    s.longest = a.longest > b.longest ? a.longest : b.longest;
    s.members = a.members + b.members;
    return s;
  }
};

}  // namespace

std::uint32_t find_stale_groups(const Stream& stream, Octree& tree, const WalkOptions& options, float margin,
                                const DeviceBuffer<Group>& groups, const InteractionLists& lists,
                                DeviceBuffer<std::uint32_t>& stale) {
  const std::size_t n = groups.size();
  DeviceBuffer<std::uint32_t> flags("lists.scratch", n), offset("lists.scratch", n + 1);
  launch(stream, "stale_groups", n,
         IsStale{tree.geometry.view(), groups.data(), lists.ranges.data(), lists.words.data(), 1.0f / options.theta,
                 1.0f - margin, flags.data()});
  exclusive_scan(stream, flags.data(), offset.data(), n);
  std::uint32_t total = 0;
  copy_to_host(stream, &total, offset.data() + n, sizeof total);
  stale.resize(total, 0.5);
  if (total > 0) launch(stream, "stale_compact", n, Compact{flags.data(), offset.data(), stale.data()});
  return total;
}

ListStatistics list_statistics(const Stream& stream, const Octree& tree, const ListView& lists) {
  return reduce_over(stream, "list_statistics", lists.count,
                     GroupStatistics{tree.count.data(), lists.groups, lists.ranges, lists.words}, ListStatistics{},
                     AddStatistics{});
}

}  // namespace maki
