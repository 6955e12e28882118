#include "kernels/tree/lists_cuda.cuh"

namespace maki {

std::uint32_t find_stale_groups(const Stream& stream, Octree& tree, const WalkOptions& options, float margin,
                                const DeviceBuffer<Group>& groups, const InteractionLists& lists,
                                DeviceBuffer<std::uint32_t>& stale, StaleCells which) {
  return cuda::find_stale_groups(stream, tree, options, margin, groups, lists, stale, which);
}

ListStatistics list_statistics(const Stream& stream, const Octree& tree, const ListView& lists) {
  return cuda::list_statistics(stream, tree, lists);
}

}  // namespace maki
