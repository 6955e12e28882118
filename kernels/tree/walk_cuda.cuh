// The walk on the GPU: one warp a group, in steps of up to 32 cells (walk_step.cuh).
//
// What a step decides goes to the warp's slice of a staging buffer, 32 bytes a step. When the group is done its length
// is known: the warp reserves exactly that room in `words` and writes the list from the staged decisions. A
// group whose steps do not fit the slice is walked once more, straight into its room; one for which `words` has
// no room is handed back to the host, which makes room for all of them.
#pragma once

#include <algorithm>

#include "kernels/device/device.hpp"
#include "kernels/tree/walk_step.cuh"

namespace maki::cuda {
namespace walk {

inline constexpr unsigned kWarps = 8;          // of a block
inline constexpr unsigned kBlocksPerUnit = 6;  // that share a multiprocessor
inline constexpr unsigned kFirstSlice = 192;                          // steps, before the first walk
inline constexpr std::size_t kStagingBudget = std::size_t{64} << 20;  // bytes

struct Work {
  const Group* groups;
  const std::uint32_t* selected;  // or nullptr: all of [begin, begin + count)
  std::uint32_t begin, count;
  unsigned wide_limit;  // kWideLimit or less
};

// Four octets' decisions: of each its first cell, the cells that are multipoles (8 bits), and the leaves (8 bits).
struct alignas(8) StagedOctet {
  std::uint32_t first, decisions;
};

struct Output {
  ListRange* ranges;
  std::uint32_t* words;
  std::uint64_t base, capacity;  // words in use before, room in all
  StagedOctet* staging;          // 4 * slice for each warp of the grid
  unsigned slice;                // steps
  WalkRecord* record;
  std::uint32_t* refused;  // indices of groups
};

struct ListLength {
  std::uint32_t cells = 0, leaves = 0;
};

struct WarpCounts {
  unsigned longest = 0;  // steps of one group
  unsigned redone = 0;   // groups walked twice
};

// Writes the words of a list, step by step.
struct Write {
  std::uint32_t* cells;  // the next word of each kind
  std::uint32_t* leaves;
  __device__ void operator()(const Step& step) {
    const unsigned mine = 1u << lane_index();
    const std::uint32_t word = step.first + lane_index() % 8;
    if (step.cells & mine) cells[__popc(step.cells & lanes_below())] = word;
    if (step.leaves & mine) leaves[__popc(step.leaves & lanes_below())] = word;
    cells += __popc(step.cells);
    leaves += __popc(step.leaves);
  }
};

// The first walk of a group: counts, and stages as many steps as there is room for.
struct Stage {
  StagedOctet* next;  // this lane's octet of the step to come
  unsigned slice;
  unsigned steps = 0;
  ListLength length{};
  __device__ void operator()(const Step& step) {
    if (steps < slice && lane_index() % 8 == 0) {
      const unsigned cells = step.cells >> lane_index() & 255u, leaves = step.leaves >> lane_index() & 255u;
      *next = {step.first, cells | leaves << 8};
    }
    next += 4;
    length.cells += __popc(step.cells);
    length.leaves += __popc(step.leaves);
    ++steps;
  }
};

// Gives the staged steps to `write`. All lanes.
__device__ inline void write_staged(const Stage& stage, Write& write) {
  const unsigned sibling = lane_index() % 8;
  const StagedOctet* mine = stage.next - 4 * stage.steps;
  StagedOctet next = *mine;
  for (unsigned steps = stage.steps; steps > 0; --steps) {
    const StagedOctet now = next;
    mine += 4;
    if (steps > 1) next = *mine;  // on its way while this step is written
    write({now.first, __ballot_sync(kAllLanes, now.decisions >> sibling & 1u),
           __ballot_sync(kAllLanes, now.decisions >> (8 + sibling) & 1u)});
  }
}

// Reserves the room of a group's list; false where there is none left. All lanes.
__device__ inline bool reserve(const Output& out, std::uint32_t group, const ListLength& length, std::uint64_t& begin) {
  const unsigned long long wanted = static_cast<unsigned long long>(length.cells) + length.leaves;
  unsigned long long before = 0;
  if (lane_index() == 0) before = atomicAdd(&out.record->words, wanted);
  begin = out.base + __shfl_sync(kAllLanes, before, 0);
  const bool room = begin + wanted <= out.capacity;
  if (lane_index() == 0) {
    if (room) {
      out.ranges[group] = {begin, length.cells, length.leaves};
    } else {
      out.ranges[group] = {out.base, 0, 0};  // until it is walked again
      atomicAdd(&out.record->missing, wanted);
      out.refused[atomicAdd(&out.record->refused, 1u)] = group;
    }
  }
  return room;
}

// One group from its box to its words. All lanes.
template <bool kCutoff>
__device__ inline void make_list(const Tree& tree, const Work& work, const Output& out, std::uint32_t group,
                                 StagedOctet* octets, Queue& queue, WarpCounts& counts) {
  const WalkTarget target = walk_target(work.groups[group]);
  Stage stage{octets + lane_index() / 8, out.slice};
  walk_group<kCutoff>(tree, target, work.wide_limit, queue, stage);
  std::uint64_t begin;
  counts.longest = max(counts.longest, stage.steps);
  if (!reserve(out, group, stage.length, begin)) return;
  Write write{out.words + begin, out.words + begin + stage.length.cells};
  __syncwarp();  // the staged decisions, and the queue, are read by other lanes
  if (stage.steps <= out.slice) {
    write_staged(stage, write);
  } else {
    ++counts.redone;
    walk_group<kCutoff>(tree, target, work.wide_limit, queue, write);
  }
  __syncwarp();  // before the next group's are written
}

// Groups in turns of kWarps to a block; within a block whichever warp is free takes the next, so that neighbours, which
// read the same cells, share a multiprocessor.
template <bool kCutoff>
__global__ void __launch_bounds__(kWarps* kWarpSize, kBlocksPerUnit) walk_kernel(Tree tree, Work work, Output out) {
  __shared__ Queue queues[kWarps];
  __shared__ unsigned next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  const unsigned warp = threadIdx.x / kWarpSize;
  StagedOctet* octets = out.staging + (static_cast<std::size_t>(blockIdx.x) * kWarps + warp) * 4 * out.slice;
  WarpCounts counts;
  for (;;) {
    unsigned ticket = 0;
    if (lane_index() == 0) ticket = atomicAdd(&next, 1u);
    ticket = __shfl_sync(kAllLanes, ticket, 0);
    const std::uint32_t item = (ticket / kWarps * gridDim.x + blockIdx.x) * kWarps + ticket % kWarps;
    if (item >= work.count) break;
    const std::uint32_t group = work.selected ? work.selected[item] : work.begin + item;
    make_list<kCutoff>(tree, work, out, group, octets, queues[warp], counts);
  }
  if (lane_index() == 0) {
    atomicMax(&out.record->longest, counts.longest);
    if (counts.redone > 0) atomicAdd(&out.record->redone, counts.redone);
  }
}

}  // namespace walk

// What tests set to force the rare paths; 0 leaves the choice to the walk.
struct WalkRoom {
  unsigned wide_limit = walk::kWideLimit;
  unsigned slice = 0;
};

// One pass over the groups of `work`: lists behind those in use, or into `refused` where there is no room. Nobody waits.
inline void walk_groups(const Stream& stream, Octree& tree, const WalkOptions& options, const walk::Work& work,
                        InteractionLists& lists, unsigned wanted_slice, WalkRecord* record, std::uint32_t* refused) {
  using namespace walk;
  const unsigned warps = kWarps * kBlocksPerUnit * static_cast<unsigned>(std::max(1, unit_count()));
  const unsigned blocks = std::min((work.count + kWarps - 1) / kWarps, warps / kWarps);
  // The slice follows the longest walk so far, so that a steady run neither repeats walks nor allocates.
  const auto most = static_cast<unsigned>(kStagingBudget / (4 * sizeof(StagedOctet)) / warps);
  const unsigned wanted = lists.scratch == 0 ? kFirstSlice : (lists.scratch + lists.scratch / 8 + 63) / 64 * 64;
  const unsigned slice = wanted_slice > 0 ? wanted_slice : std::min(most, wanted);
  DeviceBuffer<StagedOctet> staging("lists.staging", std::size_t{4} * slice * kWarps * blocks);
  const Tree view{tree.geometry.view(),    tree.count.data(), tree.first_child.data(),
                  tree.child_count.data(), options.rule(),    options.small_cell};
  lists.words.resize(lists.words.capacity());  // all of it may be written
  const Output out{lists.ranges.data(), lists.words.data(), lists.used, lists.words.capacity(), staging.data(), slice,
                   record,              refused};
  launch_blocks(stream, "walk_tree", {blocks, kWarps * kWarpSize, 0},
                options.r_cut > 0 ? walk_kernel<true> : walk_kernel<false>, view, work, out);
}

inline walk::Work work_of(const WalkRequest& request, const WalkOptions& options, const WalkRoom& room) {
  return {request.groups, request.selected, request.begin, request.count, options.one_by_one ? 0 : room.wide_limit};
}

// The record has to be zero.
inline void begin_walk(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
                       InteractionLists& lists, WalkRecord* record, DeviceBuffer<std::uint32_t>& refused,
                       const WalkRoom& room = {}) {
  lists.begin_walk(stream, request);
  refused.resize(request.count);
  walk_groups(stream, tree, options, work_of(request, options, room), lists, room.slice, record, refused.data());
}

// Takes note of what was found, and walks again what has found no room, until all has: false then.
inline bool end_walk(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
                     InteractionLists& lists, WalkRecord found, DeviceBuffer<std::uint32_t>& refused,
                     const WalkRoom& room = {}) {
  walk::Work work = work_of(request, options, room);
  DeviceBuffer<std::uint32_t> again("lists.scratch");
  for (bool at_once = true;; at_once = false) {
    const std::uint64_t total = lists.used + found.words;
    lists.scratch = std::max(lists.scratch, found.longest);
    lists.redone += found.redone;
    if (found.refused == 0) {
      lists.end_walk(request, total);
      return at_once;
    }
    if (request.append) {  // what was written stays, and the rest is walked again
      lists.redone += found.refused;
      lists.used = total - found.missing;
      refused.swap(again);
      refused.resize(found.refused);
      work.selected = again.data();
      work.count = found.refused;
    } else {  // old words need not stand beside the new ones
      lists.redone += work.count;
    }
    lists.reserve(stream, total);
    DeviceBuffer<WalkRecord> record("lists.scratch", 1);
    record.fill_zero(stream);
    walk_groups(stream, tree, options, work, lists, room.slice, record.data(), refused.data());
    copy_to_host(stream, &found, record.data(), sizeof found);
  }
}

inline void walk_tree(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
                      InteractionLists& lists, const WalkRoom& room = {}) {
  DeviceBuffer<WalkRecord> record("lists.scratch", 1);
  DeviceBuffer<std::uint32_t> refused("lists.scratch");
  record.fill_zero(stream);
  begin_walk(stream, tree, options, request, lists, record.data(), refused, room);
  WalkRecord found;
  copy_to_host(stream, &found, record.data(), sizeof found);
  end_walk(stream, tree, options, request, lists, found, refused, room);
}

}  // namespace maki::cuda
