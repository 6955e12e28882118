// The walk on the GPU: one warp a group, in steps of up to 32 cells (walk_step.cuh). Where the order of words must not
// depend on the cells left out, four groups a warp (subwarps_kernel).
//
// A step's decisions go to the group's slice of a staging buffer, 8 bytes an octet. At the end of a group its length is
// known: the warp reserves exactly that room in `words` and writes the list from the staged decisions. A group whose
// steps exceed the slice is walked once more, straight into its room; one for which `words` has no room is handed back
// to the host, which makes room for all such groups.
#pragma once

#include <algorithm>

#include "kernels/device/device.hpp"
#include "kernels/tree/walk_step.cuh"

namespace maki::cuda::walk {

// The walk of four groups by a warp. A subwarp, eight lanes, takes one octet of sibling cells of its group at a time,
// so that the order of a list's words does not depend on cells that it does not name (WalkOptions::one_by_one).
//
// A subwarp whose group is done takes the next one at once, while the others go on. The whole warp writes a list from
// its staged decisions. A group whose steps exceed its slice is walked once more by its subwarp, into its room.
inline constexpr unsigned kSubwarpBlocksPerUnit = 5;                  // 48 registers a thread; with 40 it spills
inline constexpr unsigned kSubwarpsOfBlock = kWarps * kWarpSize / 8;  // groups that a block walks at a time

// Bytes of a block's octet queues in shared memory.
inline unsigned octet_queue_bytes(unsigned room) { return kSubwarpsOfBlock * room * 5u; }

// One group's waiting octets.
struct OctetQueue {
  std::uint32_t* first;
  std::uint8_t* count;
};

__device__ inline OctetQueue octet_queue_of(unsigned subwarp, unsigned room) {
  auto* const firsts = dynamic_shared<std::uint32_t>();
  auto* const counts = reinterpret_cast<std::uint8_t*>(firsts + kSubwarpsOfBlock * room);
  return {firsts + subwarp * room, counts + subwarp * room};
}

// The state of one group's walk, the same in all lanes of its subwarp.
struct SubwarpWalk {
  WalkTarget target{};
  std::uint32_t group = 0;
  unsigned waiting = 0;  // octets
  bool active = false;   // there is a group
  bool again = false;    // the group is walked for the second time
};

// Queues the root's children; a tree that is one leaf is decided at once. One subwarp.
__device__ inline void begin_subwarp_walk(const Tree& tree, SubwarpWalk& walk, OctetQueue& queue, Stage<1>& stage) {
  const unsigned top = tree.child_count[0];
  stage.steps = 0;
  stage.length = {};
  if (top == 0) return stage({0, 0, 1u << (lane_index() & 24u)});
  walk.waiting = 1;
  if (lane_index() % 8 > 0) return;
  queue.first[0] = tree.first_child[0];
  queue.count[0] = static_cast<std::uint8_t>(top);
}

// Subwarps without a group take the next one, if any. All lanes of the warp.
__device__ inline void take_groups(const Tree& tree, const Work& work, unsigned* next, SubwarpWalk& walk,
                                   OctetQueue& queue, Stage<1>& stage) {
  unsigned ticket = 0;
  if (!walk.active && lane_index() % 8 == 0) ticket = atomicAdd(next, 1u);
  ticket = __shfl_sync(kAllLanes, ticket, 0, 8);
  const unsigned turn = ticket / kSubwarpsOfBlock * gridDim.x + blockIdx.x;
  const std::uint32_t item = turn * kSubwarpsOfBlock + ticket % kSubwarpsOfBlock;
  if (!walk.active && item < work.count) {
    walk.active = true;
    walk.again = false;
    walk.group = work.selected ? work.selected[item] : work.begin + item;
    walk.target = walk_target(work.groups[walk.group]);
    begin_subwarp_walk(tree, walk, queue, stage);
  }
  __syncwarp();  // other lanes read the queue
}

// Groups whose walk is done get their lists, or restart where the slice was too short. All lanes of the warp.
__device__ inline void end_subwarp_walks(const Tree& tree, const Output& out, SubwarpWalk& walk, OctetQueue& queue,
                                         Stage<1>& stage, WarpCounts& counts) {
  const bool done = walk.active && walk.waiting == 0;
  const bool fits = stage.steps <= out.slice;
  std::uint64_t begin;
  const bool room = reserve<8>(out, done && !walk.again, walk.group, stage.length, begin);
  __syncwarp();  // other lanes read the staged decisions
  unsigned lists = __ballot_sync(kAllLanes, room && fits && lane_index() % 8 == 0);
  for (; lists > 0; lists &= lists - 1) {
    const int lane = __ffs(static_cast<int>(lists)) - 1;
    std::uint32_t* const words = out.words + __shfl_sync(kAllLanes, begin, lane);
    Write write{words, words + __shfl_sync(kAllLanes, stage.length.cells, lane)};
    const int ahead = lane / 8 - static_cast<int>(lane_index() / 8);  // of this lane's slice
    write_staged(stage.first + ahead * static_cast<int>(out.slice), __shfl_sync(kAllLanes, stage.steps, lane), write);
  }
  __syncwarp();  // before the next group's decisions are staged
  if (!done) return;
  walk.active = room && !fits;
  counts.longest = max(counts.longest, stage.steps);
  if (!walk.active) return;
  ++counts.redone;
  walk.again = true;
  begin_subwarp_walk(tree, walk, queue, stage);
}

template <bool kCutoff>
__device__ inline void step_subwarp_walks(const Tree& tree, const Output& out, SubwarpWalk& walk, OctetQueue& queue,
                                          Stage<1>& stage) {
  const bool goes_on = walk.waiting > 0;
  const Step step = next_step<kCutoff, 1>(tree, walk.target, 0, queue, walk.waiting);
  if (!goes_on) return;
  if (walk.again) {
    const ListRange range = out.ranges[walk.group];
    std::uint32_t* const words = out.words + range.begin;
    Write{words + stage.length.cells, words + range.cells + stage.length.leaves}(step);
  }
  stage(step);
}

// Groups in turns of kSubwarpsOfBlock a block, as in walk_kernel. `room`: octets that may wait for a group.
template <bool kCutoff>
__global__ void __launch_bounds__(kWarps* kWarpSize, kSubwarpBlocksPerUnit)
    subwarps_kernel(Tree tree, Work work, Output out, unsigned room) {
  __shared__ unsigned next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  OctetQueue queue = octet_queue_of(threadIdx.x / 8, room);
  Stage<1> stage{out.staging + (static_cast<std::size_t>(blockIdx.x) * kSubwarpsOfBlock + threadIdx.x / 8) * out.slice,
                 out.slice};
  SubwarpWalk walk;
  WarpCounts counts;
  take_groups(tree, work, &next, walk, queue, stage);
  while (__any_sync(kAllLanes, walk.active)) {
    step_subwarp_walks<kCutoff>(tree, out, walk, queue, stage);
    if (!__any_sync(kAllLanes, walk.active && walk.waiting == 0)) continue;
    end_subwarp_walks(tree, out, walk, queue, stage, counts);
    take_groups(tree, work, &next, walk, queue, stage);
  }
  if (lane_index() % 8 == 0) {
    atomicMax(&out.record->longest, counts.longest);
    if (counts.redone > 0) atomicAdd(&out.record->redone, counts.redone);
  }
}

inline constexpr unsigned kFirstSlice = 192;                          // steps, before the first walk
inline constexpr std::size_t kStagingBudget = std::size_t{64} << 20;  // bytes

// Octets that may wait for a group in this tree, taken one at a time. The levels of a forest are unknown.
inline unsigned octet_queue_for(const Octree& tree) {
  const bool is_known = !tree.level_begin.empty() && tree.level_begin.back() == tree.cells;
  return octet_queue(is_known ? static_cast<unsigned>(tree.level_begin.size()) - 1 : kWalkLevels);
}

// A warp's state that outlives a group.
struct WarpState {
  StagedOctet* staged;  // its slice
  Queue& queue;
  WarpCounts counts{};
};

// One group from its box to its words. All lanes.
template <bool kCutoff>
__device__ inline void make_list(const Tree& tree, const Work& work, const Output& out, std::uint32_t group,
                                 WarpState& warp) {
  const WalkTarget target = walk_target(work.groups[group]);
  Stage<4> stage{warp.staged, out.slice};
  walk_group<kCutoff>(tree, target, work.wide_limit, warp.queue, stage);
  std::uint64_t begin;
  warp.counts.longest = max(warp.counts.longest, stage.steps);
  if (!reserve<kWarpSize>(out, true, group, stage.length, begin)) return;
  Write write{out.words + begin, out.words + begin + stage.length.cells};
  __syncwarp();  // other lanes read the staged decisions, and the queue
  if (stage.steps <= out.slice) {
    write_staged(warp.staged, 4 * stage.steps, write);
  } else {
    ++warp.counts.redone;
    walk_group<kCutoff>(tree, target, work.wide_limit, warp.queue, write);
  }
  __syncwarp();  // before the next group's decisions are written
}

// Groups in turns of kWarps a block. Within a block any free warp takes the next group, so that neighbours, which read
// the same cells, share a multiprocessor.
template <bool kCutoff>
__global__ void __launch_bounds__(kWarps* kWarpSize, kBlocksPerUnit) walk_kernel(Tree tree, Work work, Output out) {
  __shared__ Queue queues[kWarps];
  __shared__ unsigned next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  const unsigned index = threadIdx.x / kWarpSize;
  WarpState warp{out.staging + (static_cast<std::size_t>(blockIdx.x) * kWarps + index) * 4 * out.slice, queues[index]};
  for (;;) {
    unsigned ticket = 0;
    if (lane_index() == 0) ticket = atomicAdd(&next, 1u);
    ticket = __shfl_sync(kAllLanes, ticket, 0);
    const std::uint32_t item = (ticket / kWarps * gridDim.x + blockIdx.x) * kWarps + ticket % kWarps;
    if (item >= work.count) break;
    const std::uint32_t group = work.selected ? work.selected[item] : work.begin + item;
    make_list<kCutoff>(tree, work, out, group, warp);
  }
  if (lane_index() == 0) {
    atomicMax(&out.record->longest, warp.counts.longest);
    if (warp.counts.redone > 0) atomicAdd(&out.record->redone, warp.counts.redone);
  }
}

}  // namespace maki::cuda::walk

namespace maki::cuda {

// Set by tests to force the rare paths; 0 leaves the choice to the walk.
struct WalkRoom {
  unsigned wide_limit = walk::kWideLimit;
  unsigned slice = 0;
};

// A walk of a tree into these lists.
struct TreeWalk {
  Octree& tree;
  const WalkOptions& options;
  InteractionLists& lists;
  WalkRoom room{};
};

// One pass over the groups of `request`: lists go after those in use, groups without room into `refused`. Nobody waits.
inline void walk_groups(const Stream& stream, const TreeWalk& walk_of, const WalkRequest& request, WalkRecord* record,
                        std::uint32_t* refused) {
  using namespace walk;
  const auto& [tree, options, lists, room] = walk_of;
  const unsigned warps = kWarps * (options.one_by_one ? kSubwarpBlocksPerUnit : kBlocksPerUnit) *
                         static_cast<unsigned>(std::max(1, unit_count()));
  const unsigned of_block = options.one_by_one ? kSubwarpsOfBlock : kWarps;
  const unsigned blocks = std::min((request.count + of_block - 1) / of_block, warps / kWarps);
  // The slice follows the longest walk so far, so that a steady run neither repeats walks nor allocates.
  const auto most = static_cast<unsigned>(kStagingBudget / (4 * sizeof(StagedOctet)) / warps);
  const unsigned wanted = lists.scratch == 0 ? kFirstSlice : (lists.scratch + lists.scratch / 8 + 63) / 64 * 64;
  const unsigned slice = room.slice > 0 ? room.slice : std::min(most, wanted);
  DeviceBuffer<StagedOctet> staging("lists.staging", std::size_t{4} * slice * kWarps * blocks);
  const Tree view{tree.topology(), tree.geometry.view(), options.rule(), options.small_cell};
  lists.words.resize(lists.words.capacity());  // all of it may be written
  const Output out{lists.ranges.data(),
                   lists.words.data(),
                   lists.used,
                   lists.words.capacity(),
                   staging.data(),
                   slice,
                   record,
                   refused};
  const Work work{request.groups, request.selected, request.begin, request.count, room.wide_limit};
  const bool cutoff = options.r_cut > 0;
  if (options.one_by_one) {
    const unsigned queue = octet_queue_for(tree);
    launch_blocks(stream, "walk_tree", {blocks, kWarps * kWarpSize, octet_queue_bytes(queue)},
                  cutoff ? subwarps_kernel<true> : subwarps_kernel<false>, view, work, out, queue);
  } else {
    launch_blocks(stream, "walk_tree", {blocks, kWarps * kWarpSize, 0}, cutoff ? walk_kernel<true> : walk_kernel<false>,
                  view, work, out);
  }
}

// `record` must be zero.
inline void begin_walk(const Stream& stream, const TreeWalk& walk, const WalkRequest& request, WalkRecord* record,
                       DeviceBuffer<std::uint32_t>& refused) {
  walk.lists.begin_walk(stream, request);
  refused.resize(request.count);
  walk_groups(stream, walk, request, record, refused.data());
}

// Records the results and walks groups without room again until all have it; false where that was needed.
inline bool end_walk(const Stream& stream, const TreeWalk& walk, const WalkRequest& request, WalkRecord found,
                     DeviceBuffer<std::uint32_t>& refused) {
  InteractionLists& lists = walk.lists;
  WalkRequest left = request;
  DeviceBuffer<std::uint32_t> again("lists.scratch");
  for (bool at_once = true;; at_once = false) {
    const std::uint64_t total = lists.used + found.words;
    lists.scratch = std::max(lists.scratch, found.longest);
    lists.redone += found.redone;
    if (found.refused == 0) {
      lists.end_walk(request, total);
      return at_once;
    }
    if (request.append) {  // lists written stay; the rest is walked again
      lists.redone += found.refused;
      lists.used = total - found.missing;
      refused.swap(again);
      refused.resize(found.refused);
      left.selected = again.data();
      left.count = found.refused;
    } else {  // old and new words need not coexist
      lists.redone += left.count;
    }
    lists.reserve(stream, total);
    DeviceBuffer<WalkRecord> record("lists.scratch", 1);
    record.fill_zero(stream);
    walk_groups(stream, walk, left, record.data(), refused.data());
    copy_to_host(stream, &found, record.data(), sizeof found);
  }
}

inline void walk_tree(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
                      InteractionLists& lists, const WalkRoom& room = {}) {
  DeviceBuffer<WalkRecord> record("lists.scratch", 1);
  DeviceBuffer<std::uint32_t> refused("lists.scratch");
  record.fill_zero(stream);
  const TreeWalk walk{tree, options, lists, room};
  begin_walk(stream, walk, request, record.data(), refused);
  WalkRecord found;
  copy_to_host(stream, &found, record.data(), sizeof found);
  end_walk(stream, walk, request, found, refused);
}

}  // namespace maki::cuda
