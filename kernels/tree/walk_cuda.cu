// The walk on the GPU (walk_cuda.cuh), and passes over kept lists: one warp a group, so that loads of a list's words
// are coalesced.
#include "kernels/tree/walk.hpp"

#include <algorithm>

#include "kernels/device/device.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/tree/walk_cuda.cuh"

namespace maki {
namespace {

using cuda::walk::kBlocksPerUnit, cuda::walk::kWarps, cuda::walk::lane_index;

// A grid whose warps process `groups` in turns.
inline LaunchShape shape_for(std::size_t groups) {
  const std::size_t resident = static_cast<std::size_t>(std::max(1, unit_count())) * kBlocksPerUnit;
  return {static_cast<unsigned>(std::min((groups + kWarps - 1) / kWarps, resident)), kWarps * kWarpSize, 0};
}

__device__ inline std::uint32_t first_item() { return blockIdx.x * kWarps + threadIdx.x / kWarpSize; }
__device__ inline std::uint32_t item_stride() { return gridDim.x * kWarps; }

// flags[i] = 1 where the list at place i is stale, else 0.
__global__ void __launch_bounds__(kWarps* kWarpSize, kBlocksPerUnit)
    stale_kernel(CellGeometryView g, const std::uint32_t* cell_count, StaleCriterion criterion, ListView lists,
                 std::uint32_t* flags) {
  for (std::uint32_t i = first_item(); i < lists.count; i += item_stride()) {
    const std::uint32_t group = lists.selected ? lists.selected[i] : i;
    const WalkTarget target = walk_target(lists.groups[group]);
    const ListRange range = lists.ranges[group];
    bool stale = false;
    for (std::uint32_t k = 0; k < range.cells && !stale; k += kWarpSize) {
      const std::uint32_t mine = k + lane_index();
      bool near = false;
      if (mine < range.cells) {
        const std::uint32_t c = lists.words[range.begin + mine];
        near = criterion.looks_at(criterion.cells == StaleCells::kAll ? 0 : cell_count[c]) &&
               criterion.has_come_near(target, g, c);
      }
      stale = __any_sync(kAllLanes, near);
    }
    if (lane_index() == 0) flags[i] = stale ? 1 : 0;
  }
}

// ListStatistics in types of CUDA's atomics.
struct Totals {
  unsigned long long particle_pairs, cell_pairs, words, longest, members;
};

__device__ inline unsigned long long* counter(std::uint64_t& sum) {
  static_assert(sizeof sum == sizeof(unsigned long long));
  return reinterpret_cast<unsigned long long*>(&sum);
}

// Adds the statistics of lists.count groups to `totals`.
__global__ void __launch_bounds__(kWarps* kWarpSize, kBlocksPerUnit)
    statistics_kernel(const std::uint32_t* cell_count, ListView lists, ListStatistics* totals) {
  __shared__ Totals of_warp[kWarps];
  ListStatistics mine;
  for (std::uint32_t i = first_item(); i < lists.count; i += item_stride()) {
    const std::uint32_t g = lists.selected ? lists.selected[i] : i;
    const ListRange range = lists.ranges[g];
    const std::uint32_t* leaves = lists.words + range.begin + range.cells;
    std::uint32_t particles = 0;
    for (std::uint32_t k = lane_index(); k < range.leaves; k += kWarpSize) particles += cell_count[leaves[k]];
    mine.add(__reduce_add_sync(kAllLanes, particles), range, lists.groups[g].count);
  }
  if (lane_index() == 0)
    of_warp[threadIdx.x / kWarpSize] = {mine.particle_pairs, mine.cell_pairs, mine.words, mine.longest, mine.members};
  __syncthreads();
  if (threadIdx.x > 0) return;
  Totals sum = of_warp[0];
  for (unsigned w = 1; w < kWarps; ++w) {
    sum.particle_pairs += of_warp[w].particle_pairs;
    sum.cell_pairs += of_warp[w].cell_pairs;
    sum.words += of_warp[w].words;
    sum.longest = max(sum.longest, of_warp[w].longest);
    sum.members += of_warp[w].members;
  }
  atomicAdd(counter(totals->particle_pairs), sum.particle_pairs);
  atomicAdd(counter(totals->cell_pairs), sum.cell_pairs);
  atomicAdd(counter(totals->words), sum.words);
  atomicMax(counter(totals->longest), sum.longest);
  atomicAdd(counter(totals->members), sum.members);
}

}  // namespace

void flag_stale_groups(const Stream& stream, Octree& tree, const StaleCriterion& criterion, const ListView& view,
                       std::uint32_t* flags) {
  launch_blocks(stream, "stale_groups", shape_for(view.count), stale_kernel, tree.geometry.view(), tree.count.data(),
                criterion, view, flags);
}

void add_list_statistics(const Stream& stream, const Octree& tree, const ListView& view, ListStatistics* total) {
  launch_blocks(stream, "list_statistics", shape_for(view.count), statistics_kernel, tree.count.data(), view, total);
}

ListStatistics list_statistics(const Stream& stream, const Octree& tree, const ListView& lists) {
  DeviceBuffer<ListStatistics> total("lists.scratch", 1);
  total.fill_zero(stream);
  add_list_statistics(stream, tree, lists, total.data());
  ListStatistics found;
  copy_to_host(stream, &found, total.data(), sizeof found);
  return found;
}

double walk_bytes(double particles) {
  constexpr double members = 45, at_a_time = 48 * 132;  // particles of a group; groups on a large GPU
  return 4.0 * sizeof(cuda::walk::StagedOctet) * cuda::walk::kFirstSlice * std::min(at_a_time, particles / members);
}

void walk_tree(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
               InteractionLists& lists) {
  cuda::walk_tree(stream, tree, options, request, lists);
}

QueuedWalk queue_walk(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
                      InteractionLists& lists, Results& results) {
  QueuedWalk walk;
  walk.request = request;
  walk.record = results.make<WalkRecord>(stream);
  cuda::begin_walk(stream, {tree, options, lists}, request, walk.record.place, walk.refused);
  return walk;
}

bool finish_walk(const Stream& stream, Octree& tree, const WalkOptions& options, QueuedWalk& walk,
                 InteractionLists& lists, Results& results) {
  return cuda::end_walk(stream, {tree, options, lists}, walk.request, results[walk.record], walk.refused);
}

}  // namespace maki
