#include "kernels/tree/lists_cuda.cuh"

namespace maki {

std::uint32_t find_stale_groups(const Stream& stream, Octree& tree, const StaleCriterion& criterion,
                                const ListView& lists, DeviceBuffer<std::uint32_t>& stale) {
  return cuda::find_stale_groups(stream, tree, criterion, lists, stale);
}

ListStatistics list_statistics(const Stream& stream, const Octree& tree, const ListView& lists) {
  DeviceBuffer<ListStatistics> total("lists.scratch", 1);
  total.fill_zero(stream);
  add_list_statistics(stream, tree, lists, total.data());
  ListStatistics found;
  copy_to_host(stream, &found, total.data(), sizeof found);
  return found;
}

void add_list_statistics(const Stream& stream, const Octree& tree, const ListView& lists, ListStatistics* total) {
  cuda::add_list_statistics(stream, tree, lists, total);
}

}  // namespace maki
