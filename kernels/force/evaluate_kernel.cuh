// The kernel of list evaluation: one block a group. The block's warps share the list and meet only at the end. Sums run
// in a fixed order, so that a list gives the same bits every time.
#pragma once

#include "kernels/force/evaluate_tiles.cuh"
#include "kernels/force/pair_formula.hpp"

namespace maki::cuda {

inline constexpr unsigned kWarps = 4;
inline constexpr unsigned kBlock = kWarps * kWarpSize;
// Blocks that a multiprocessor holds: 20 warps of 96 registers, 16 of 128 for longer formulas, 12 of 168 for the
// longest. On sm_80 the compiler needs more registers and would spill.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr bool kMoreRegisters = true;
#else
inline constexpr bool kMoreRegisters = false;
#endif
template <class Law>
constexpr unsigned blocks_of() {
  constexpr bool split = Law::kSplit != Split::kNone, s2 = Law::kSplit == Split::kS2;
  if (Law::kSpline && Law::kPotential && (Law::kOrder > 6 || (kMoreRegisters && split))) return 3;
  const bool refined = kMoreRegisters && Law::kRefine && (s2 || !split);
  return Law::kSpline || (split && Law::kPotential) || refined ? 4 : 5;
}
template <class Law>
inline constexpr unsigned kBlocks = blocks_of<Law>();

// The begin of this warp's share of n words.
__device__ __forceinline__ std::uint32_t begin_of_share(std::uint32_t n, unsigned warp) {
  return n / kWarps * warp + min(n % kWarps, warp);
}

__device__ __forceinline__ void store(float& to, float value, bool add) { to = add ? to + value : value; }

// Sums the totals of warps and subsets and writes them out.
template <class Law>
__device__ __forceinline__ void store(const Part& part, const LaneShape& shape, const WarpShared* shared,
                                      const ForceOutput& out) {
  const float scale = 1.0f / part.k.unit;
  for (unsigned i = threadIdx.x; i < part.count; i += kBlock) {
    const unsigned place = i / shape.lanes * kWarpSize + i % shape.lanes;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (unsigned subset = 0; subset < shape.subsets; ++subset) {
      for (unsigned warp = 0; warp < kWarps; ++warp) {
        const float4 s = shared[warp].totals[place + subset * shape.lanes];
        sum = make_float4(sum.x + s.x, sum.y + s.y, sum.z + s.z, sum.w + s.w);
      }
    }
    store(out.acceleration.x[part.first + i], sum.x * scale * scale, out.add);
    store(out.acceleration.y[part.first + i], sum.y * scale * scale, out.add);
    store(out.acceleration.z[part.first + i], sum.z * scale * scale, out.add);
    if constexpr (Law::kPotential) store(out.potential[part.first + i], -sum.w * scale, out.add);
  }
}

template <class Law, int kPerLane>
__device__ __forceinline__ void add_list(Part& part, const LaneShape& shape, bool quadrupoles,
                                         const std::uint32_t* words, const ListRange& range, WarpShared& shared) {
  const unsigned warp = threadIdx.x / kWarpSize;
  WarpSums<Law, kPerLane> sums(part, shared, lane_index() % shape.lanes, shape.lanes);
  const std::uint32_t cell = begin_of_share(range.cells, warp), cells = begin_of_share(range.cells, warp + 1) - cell;
  if (quadrupoles) sums.add_quadrupoles(words + cell, cells);
  const std::uint32_t leaf = begin_of_share(range.leaves, warp), leaves = begin_of_share(range.leaves, warp + 1) - leaf;
  part.monopoles = !quadrupoles;
#pragma unroll 1
  for (;;) {  // one copy of the loops for monopoles and leaves
    sums.add_leaves(part.monopoles ? words + cell : words + range.cells + leaf, part.monopoles ? cells : leaves);
    if (!part.monopoles) break;
    part.monopoles = false;
  }
  sums.flush();
}

template <class Law>
__global__ void __launch_bounds__(kBlock, kBlocks<Law>)
    evaluate_kernel(PairParameters k, bool quadrupoles, SourceView sources, ListView lists, ForceOutput out) {
  __shared__ WarpShared shared[kWarps];
  const std::uint32_t index = lists.selected ? lists.selected[blockIdx.x] : blockIdx.x;
  const Group group = lists.groups[index];
  const ListRange range = lists.ranges[index];
  const std::uint32_t* words = lists.words + range.begin;
  WarpShared& own = shared[threadIdx.x / kWarpSize];
  for (std::uint32_t done = 0; done < group.count;) {
    const std::uint32_t count = size_of_part(group.count - done);
    const LaneShape shape = choose_shape(count);
    const unsigned subset = lane_index() / shape.lanes;  // surplus lanes repeat the first subset; unused
    Part part{k, sources, group, group.first + done, count, subset < shape.subsets ? subset : 0, shape.subsets};
    if (shape.per_lane == 3)
      add_list<Law, 3>(part, shape, quadrupoles, words, range, own);
    else if (shape.per_lane == 4)
      add_list<Law, 4>(part, shape, quadrupoles, words, range, own);
    else
      add_list<Law, 5>(part, shape, quadrupoles, words, range, own);
    __syncthreads();
    store<Law>(part, shape, shared, out);
    __syncthreads();
    done += count;
  }
}

// From a law chosen at run time to a compiled one: every split, order and softening, with and without the potential.
// Calls f with the PairLaw of k.
template <Softening kSoftening, bool kPotential, class F>
void with_split(const PairParameters& k, F f) {
  if (k.split == Split::kNone) return f(PairLaw<Split::kNone, 0, kSoftening, kPotential, true>{});
  if (k.split == Split::kS2) return f(PairLaw<Split::kS2, 0, kSoftening, kPotential, true>{});
  switch (k.order) {
    case 3: return f(PairLaw<Split::kPolynomial, 3, kSoftening, kPotential, true>{});
    case 4: return f(PairLaw<Split::kPolynomial, 4, kSoftening, kPotential, true>{});
    case 5: return f(PairLaw<Split::kPolynomial, 5, kSoftening, kPotential, true>{});
    case 6: return f(PairLaw<Split::kPolynomial, 6, kSoftening, kPotential, true>{});
    default: return f(PairLaw<Split::kPolynomial, 8, kSoftening, kPotential, true>{});
  }
}

template <class F>
void with_law(const PairParameters& k, bool potential, F f) {
  if (k.softening == Softening::kSpline)
    return potential ? with_split<Softening::kSpline, true>(k, f) : with_split<Softening::kSpline, false>(k, f);
  return potential ? with_split<Softening::kPlummer, true>(k, f) : with_split<Softening::kPlummer, false>(k, f);
}

}  // namespace maki::cuda
