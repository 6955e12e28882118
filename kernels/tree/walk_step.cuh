// The core of the GPU's walk: a warp tests up to 32 cells at a time, of one group, or eight for each of four groups.
#pragma once

#include "kernels/device/launch.cuh"
#include "kernels/tree/walk.hpp"

namespace maki::cuda::walk {

// Octets (the up to eight children of a cell) wait in shared memory. The last ones are taken, one cell a lane: four
// octets by a warp that walks one group, one by a subwarp (eight lanes). Last in, first out keeps four octets waiting
// nearly always (lanes are 85 to 98 % busy), with room that does not grow with the tree.
inline constexpr unsigned kQueue = 320;  // octets that may wait, of a group to a warp
// With more waiting than this, octets are taken one at a time: each level below then leaves at most seven more, where
// taking four leaves up to 28. So the queue cannot overflow.
inline constexpr unsigned kWideLimit = kQueue - 28 - 7 * (kWalkLevels - 1);

// Octets that may wait in a tree of so many levels, if taken one at a time.
MAKI_HD unsigned octet_queue(unsigned levels) { return 1 + 7 * levels; }

struct Tree : TreeTopology {
  CellGeometryView g;
  OpeningRule rule;
  std::uint32_t small_cell;
};

struct Queue {
  std::uint32_t first[kQueue];
  std::uint8_t count[kQueue];
};

// One step's decisions: the first cell of this lane's octet, and masks of the lanes whose cells are multipoles, or
// leaves.
struct Step {
  std::uint32_t first;
  unsigned cells, leaves;
};

__device__ inline unsigned lane_index() { return threadIdx.x % kWarpSize; }
__device__ inline unsigned lanes_below() { return (1u << lane_index()) - 1; }

__device__ inline bool reaches(const Tree& tree, const WalkTarget& t, std::uint32_t c) {
  return within_reach(tree.rule, tree.g.box_gap_squared(t, c));
}

__device__ inline bool is_far(const Tree& tree, const WalkTarget& t, std::uint32_t c) {
  return far_enough(tree.g.centre_gap_squared(t, c), opening_distance(tree.rule, t, tree.g.size_of(c)));
}

// Takes octets from the queue, tests their cells, and appends those that are opened. All lanes of the warp. kOctets:
// octets taken at a time, 4 or 1, by as many subwarps, which share a group and its queue. `waiting` and the step are
// the same in all of these; a step of a group without waiting octets decides nothing. Taken one at a time, octets are
// met in an order that depends only on the opened cells.
template <bool kCutoff, unsigned kOctets, class Octets>
__device__ inline Step next_step(const Tree& tree, const WalkTarget& target, unsigned wide_limit, Octets& queue,
                                 unsigned& waiting) {
  static_assert(kOctets == 1 || kOctets == 4);
  const unsigned octet = kOctets == 1 ? 0 : lane_index() / 8, sibling = lane_index() % 8;
  const unsigned together = kOctets == 1 ? 255u << (lane_index() & 24u) : kAllLanes;
  const unsigned most = kOctets == 1 || waiting > wide_limit ? 1u : 4u;
  const unsigned taken = min(waiting, most);
  waiting -= taken;
  Step step{0, 0, 0};
  unsigned siblings = 0;
  if (octet < taken) {
    step.first = queue.first[waiting + octet];
    siblings = queue.count[waiting + octet];
  }
  __syncwarp();  // their slots are reused below
  const std::uint32_t c = step.first + sibling;
  bool listed = sibling < siblings;
  if (kCutoff && listed) listed = reaches(tree, target, c);
  bool far = false, small = false;
  std::uint32_t first_child = 0;
  unsigned children = 0;
  if (listed) {
    children = tree.child_count[c];  // all loads at once: none waits for a decision
    first_child = tree.first_child[c];
    const std::uint32_t count = tree.count[c];
    small = count <= tree.small_cell;
    far = is_far(tree, target, c) || count == kClosedCell;
  }
  const bool opened = listed && !far && children > 0;
  const unsigned open = __ballot_sync(kAllLanes, opened) & together;
  step.cells = __ballot_sync(kAllLanes, far && !small) & together;
  step.leaves = __ballot_sync(kAllLanes, listed) & together & ~(open | step.cells);
  if (opened) {
    const unsigned at = waiting + __popc(open & lanes_below());
    queue.first[at] = first_child;
    queue.count[at] = static_cast<std::uint8_t>(children);
  }
  waiting += __popc(open);
  __syncwarp();
  return step;
}

// Passes every step of a walk of one group by the warp to `take`. All lanes.
template <bool kCutoff, class Take>
__device__ inline void walk_group(const Tree& tree, const WalkTarget& target, unsigned wide_limit, Queue& queue,
                                  Take& take) {
  const unsigned top = tree.child_count[0];
  if (top == 0) return take(Step{0, 0, 1});  // the tree is one leaf
  if (lane_index() == 0) {
    queue.first[0] = tree.first_child[0];
    queue.count[0] = static_cast<std::uint8_t>(top);
  }
  __syncwarp();
  for (unsigned waiting = 1; waiting > 0;) take(next_step<kCutoff, 4>(tree, target, wide_limit, queue, waiting));
}

// Input and output of both GPU walks (walk_cuda.cuh): decisions are staged, then written as words.

inline constexpr unsigned kWarps = 8;          // of a block
inline constexpr unsigned kBlocksPerUnit = 6;  // that share a multiprocessor; sm_120 has room for 1536 threads

struct Work {
  const Group* groups;
  const std::uint32_t* selected;  // or nullptr: all of [begin, begin + count)
  std::uint32_t begin, count;
  unsigned wide_limit;  // kWideLimit or less
};

// An octet's decisions: its first cell, the cells that are multipoles (8 bits), and the leaves (8 bits).
struct alignas(8) StagedOctet {
  std::uint32_t first, decisions;
};

struct Output {
  ListRange* ranges;
  std::uint32_t* words;
  std::uint64_t base, capacity;  // words in use before, room in all
  StagedOctet* staging;          // a slice for each group walked at a time
  unsigned slice;                // steps of a group that fit a slice
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

// The first walk of a group: counts words, and stages the steps that fit. kOctets: octets of a step.
template <unsigned kOctets>
struct Stage {
  StagedOctet* first;  // of the slice
  unsigned slice;
  unsigned steps = 0;
  ListLength length{};
  __device__ void operator()(const Step& step) {
    if (steps < slice && lane_index() % 8 == 0) {
      const unsigned cells = step.cells >> lane_index() & 255u, leaves = step.leaves >> lane_index() & 255u;
      first[steps * kOctets + (kOctets == 1 ? 0 : lane_index() / 8)] = {step.first, cells | leaves << 8};
    }
    length.cells += __popc(step.cells);
    length.leaves += __popc(step.leaves);
    ++steps;
  }
};

// Passes `count` staged octets to `write`, four at a time. All lanes.
__device__ inline void write_staged(const StagedOctet* octets, unsigned count, Write& write) {
  const unsigned sibling = lane_index() % 8;
  unsigned mine = lane_index() / 8;
  const auto load = [&] { return mine < count ? octets[mine] : StagedOctet{0, 0}; };
  StagedOctet next = load();
  for (unsigned written = 0; written < count; written += 4) {
    const StagedOctet now = next;
    mine += 4;
    next = load();  // loads during the writes
    write({now.first, __ballot_sync(kAllLanes, now.decisions >> sibling & 1u),
           __ballot_sync(kAllLanes, now.decisions >> (8 + sibling) & 1u)});
  }
}

// Reserves the room of a group's list for each kLanes lanes that ask; false where no room is left, or none was asked
// for. All lanes.
template <unsigned kLanes>
__device__ inline bool reserve(const Output& out, bool wants, std::uint32_t group, const ListLength& length,
                               std::uint64_t& begin) {
  const bool asks = wants && lane_index() % kLanes == 0;
  const unsigned long long wanted = static_cast<unsigned long long>(length.cells) + length.leaves;
  unsigned long long before = 0;
  if (asks) before = atomicAdd(&out.record->words, wanted);
  begin = out.base + __shfl_sync(kAllLanes, before, 0, kLanes);
  const bool room = begin + wanted <= out.capacity;
  if (asks) {
    if (room) {
      out.ranges[group] = {begin, length.cells, length.leaves};
    } else {
      out.ranges[group] = {out.base, 0, 0};  // until it is walked again
      atomicAdd(&out.record->missing, wanted);
      out.refused[atomicAdd(&out.record->refused, 1u)] = group;
    }
  }
  return wants && room;
}

}  // namespace maki::cuda::walk
