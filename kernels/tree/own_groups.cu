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

}  // namespace maki
