// The walk of four groups by a warp: a subwarp, eight of its lanes, takes one octet of sibling cells of its group at a
// time, so that the words of a list stand in the same order whatever cells there are that it does not name
// (WalkOptions::one_by_one).
//
// A subwarp whose group is done takes the next one at once, while the others go on. The whole warp writes a list from
// its staged decisions. A group whose steps do not fit its slice is walked once more by its subwarp, into its room.
#pragma once

#include "kernels/tree/walk_step.cuh"

namespace maki::cuda::walk {

inline constexpr unsigned kSubwarpBlocksPerUnit = 5;                  // 48 registers a thread; with 40 it spills
inline constexpr unsigned kSubwarpsOfBlock = kWarps * kWarpSize / 8;  // groups that a block walks at a time

// Bytes of a block's queues in shared memory.
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

// The root's children begin to wait; of a tree that is one leaf the walk is that leaf. One subwarp.
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

// Subwarps without a group take the next one, where there is any. All lanes of the warp.
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
  __syncwarp();  // the queue is read by other lanes
}

// Groups whose walk is done get their lists, or begin again where the slice was too short. All lanes of the warp.
__device__ inline void end_subwarp_walks(const Tree& tree, const Output& out, SubwarpWalk& walk, OctetQueue& queue,
                                         Stage<1>& stage, WarpCounts& counts) {
  const bool done = walk.active && walk.waiting == 0;
  const bool fits = stage.steps <= out.slice;
  std::uint64_t begin;
  const bool room = reserve<8>(out, done && !walk.again, walk.group, stage.length, begin);
  __syncwarp();  // the staged decisions are read by other lanes
  unsigned lists = __ballot_sync(kAllLanes, room && fits && lane_index() % 8 == 0);
  for (; lists > 0; lists &= lists - 1) {
    const int lane = __ffs(static_cast<int>(lists)) - 1;
    std::uint32_t* const words = out.words + __shfl_sync(kAllLanes, begin, lane);
    Write write{words, words + __shfl_sync(kAllLanes, stage.length.cells, lane)};
    const int ahead = lane / 8 - static_cast<int>(lane_index() / 8);  // of this lane's slice
    write_staged(stage.first + ahead * static_cast<int>(out.slice), __shfl_sync(kAllLanes, stage.steps, lane), write);
  }
  __syncwarp();  // before the next group's are staged
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

// Groups in turns of kSubwarpsOfBlock to a block, as in walk_kernel. `room`: octets that may wait for a group.
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

}  // namespace maki::cuda::walk
