// Input and output of both GPU walks (walk_cuda.cuh, walk_subwarps.cuh): decisions are staged, then written as words.
#pragma once

#include "kernels/tree/walk_step.cuh"

namespace maki::cuda::walk {

inline constexpr unsigned kWarps = 8;          // of a block
inline constexpr unsigned kBlocksPerUnit = 6;  // that share a multiprocessor

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
  StagedOctet* staging;          // a slice for each group that is walked at a time
  unsigned slice;                // steps of a group that it has room for
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

// The first walk of a group: counts words, and stages as many steps as there is room for. kOctets: octets of a step.
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

// Gives `count` staged octets to `write`, four at a time. All lanes.
__device__ inline void write_staged(const StagedOctet* octets, unsigned count, Write& write) {
  const unsigned sibling = lane_index() % 8;
  unsigned mine = lane_index() / 8;
  const auto load = [&] { return mine < count ? octets[mine] : StagedOctet{0, 0}; };
  StagedOctet next = load();
  for (unsigned written = 0; written < count; written += 4) {
    const StagedOctet now = next;
    mine += 4;
    next = load();  // on its way while these are written
    write({now.first, __ballot_sync(kAllLanes, now.decisions >> sibling & 1u),
           __ballot_sync(kAllLanes, now.decisions >> (8 + sibling) & 1u)});
  }
}

// Reserves the room of a group's list for each kLanes lanes that want it; false where there is none left, or nothing
// was wanted. All lanes.
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
