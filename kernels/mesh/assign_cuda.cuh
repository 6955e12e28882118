// Mass assignment on the GPU: tiles of the mesh in shared memory, exact integers.
//
// A block takes a chunk of consecutive particles. In Morton order they lie in a few tiles: the block picks the first
// particle left, gathers all of the chunk whose clouds fit a tile around its place, adds them there, adds the tile's
// cells that are not zero to the mesh, and goes on with the next tile. What finds too little company (a particle that
// drifted far since the sort, a void) goes to the mesh directly. Any order of particles gives the same counts.
//
// A count has 64 bits. In a tile it is two arrays of 32-bit words: the atomic add to the low word returns what was
// there and so tells the carry (64-bit atomics in shared memory become a loop).
//
// The lanes of a warp take the cells of one particle's cloud (8 lanes for a cloud of 2^3 cells), not one particle each:
// their cells are then different ones, in different banks, however the particles cluster. Each lane keeps its sum in
// registers while the next particle has the same cells, so that thousands of particles in a cell cost a handful of
// atomics. Weights are made one particle a lane, 32 at a time, and handed over through shared memory.
#pragma once

#include "kernels/device/buffer.hpp"
#include "kernels/device/cooperative.cuh"
#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/assign_tile.cuh"

namespace maki::cuda {

inline constexpr unsigned kChunk = 2048;  // particles a block
inline constexpr unsigned kPerThread = kChunk / kAssignThreads;
inline constexpr unsigned kFewest = 64;     // particles that are worth a tile
inline constexpr unsigned kMaxMisses = 16;  // tiles in vain; then all that is left goes to the mesh directly

// Column `lane` of the warp's stage: the units in each row of cells, the weights along z, the place.
template <int S, class Target>
__device__ __forceinline__ void stage_particle(const AssignJob& job, const Target& target, const SourceParticle& p,
                                               std::uint32_t* column) {
  using Lanes = CloudLanes<S>;
  std::uint32_t w[S], in_x[S], in_row[S];
  integer_weights<S>(mesh_position<S>(p.x, job.m, job.half_cells).fraction, job.bits, w);
  split_units<S>(units_of(p.mass, job.equal_units, job.units_per_mass), job.bits, w, in_x);
  integer_weights<S>(mesh_position<S>(p.y, job.m, job.half_cells).fraction, job.bits, w);
#pragma unroll
  for (int i = 0; i < S; ++i) {
    split_units<S>(in_x[i], job.bits, w, in_row);
#pragma unroll
    for (int j = 0; j < S; ++j) column[(i * S + j) * kStageRow] = in_row[j];
  }
  integer_weights<S>(mesh_position<S>(p.z, job.m, job.half_cells).fraction, job.bits, w);
#pragma unroll
  for (int k = 0; k < S; ++k) column[(Lanes::kRows + k) * kStageRow] = w[k];
  target.stage(first_cell<S>(job, p.x, p.y, p.z), column + Lanes::kWeights * kStageRow);
}

// The warp adds its share of the `count` particles in the list.
template <int S, class Target>
__device__ __forceinline__ void add_share(const AssignJob& job, const Target& target, const SourceParticle* chunk,
                                          const std::uint16_t* list, unsigned count, std::uint32_t* stage) {
  using Lanes = CloudLanes<S>;
  const unsigned lane = threadIdx.x % kWarpSize;
  const unsigned in_cloud = lane % Lanes::kLanes;
  const bool active = in_cloud < S * S * S;
  const unsigned i = active ? in_cloud : 0;
  const Cell3 cell{static_cast<int>(i / (S * S)), static_cast<int>(i / S % S), static_cast<int>(i % S)};
  const std::uint32_t *const rows = stage + i / S * kStageRow,
                      *const weights = stage + (Lanes::kRows + i % S) * kStageRow,
                      *const places = stage + Lanes::kWeights * kStageRow;
  Count sum[Lanes::kCells] = {};
  typename Target::Place place{};
  bool any = false;  // something is in `sum`
  const unsigned warp = threadIdx.x / kWarpSize, share = (count + kAssignWarps - 1) / kAssignWarps;
  const unsigned begin = min(count, warp * share), end = min(count, begin + share);
  for (unsigned first = begin; first < end; first += kWarpSize) {
    const unsigned here = end - first < kWarpSize ? end - first : kWarpSize;
    __syncwarp();  // the stage has been read
    if (lane < here) stage_particle<S>(job, target, chunk[list[first + lane]], stage + lane);
    __syncwarp();
    // Neighbours in the list to the same lanes: they are neighbours in space.
    constexpr unsigned kTurns = kWarpSize / Lanes::kTogether;
    const unsigned from = lane / Lanes::kLanes * kTurns, to = from + kTurns < here ? from + kTurns : here;
    for (unsigned p = from; p < to; ++p) {
      const typename Target::Place next = Target::staged(places + p);
      Count added[Lanes::kCells];
#pragma unroll
      for (int c = 0; c < Lanes::kCells; ++c)
        added[c] = static_cast<Count>(rows[p + static_cast<unsigned>(c) * 2 * S * kStageRow]) * weights[p];
      if (any && active && !(next == place)) {
        target.template add<S>(place, cell, sum);
#pragma unroll
        for (int c = 0; c < Lanes::kCells; ++c) sum[c] = 0;
      }
      place = next;
      any = true;
#pragma unroll
      for (int c = 0; c < Lanes::kCells; ++c) sum[c] += added[c];
    }
  }
  if (any && active) target.template add<S>(place, cell, sum);
}

// A thread's particles of the chunk: lane + 32 q of its warp's 256, q = 0 ... 7, a bit of a mask for each.
struct OwnParticles {
  std::uint32_t xy[kPerThread], z[kPerThread];  // first cells of the clouds
};

__device__ __forceinline__ unsigned own_index(unsigned q) {
  return threadIdx.x / kWarpSize * (kWarpSize * kPerThread) + q * kWarpSize + threadIdx.x % kWarpSize;
}

// Gives the mask of those that exist.
template <int S>
__device__ __forceinline__ unsigned load_own(const AssignJob& job, std::size_t chunk_first, OwnParticles& own) {
  unsigned there = 0;
#pragma unroll
  for (unsigned q = 0; q < kPerThread; ++q) {
    own.xy[q] = own.z[q] = 0;
    if (chunk_first + own_index(q) >= job.n) continue;
    const SourceParticle p = job.particles[chunk_first + own_index(q)];
    const Cell3 first = first_cell<S>(job, p.x, p.y, p.z);
    own.xy[q] = static_cast<std::uint32_t>(first.x) | static_cast<std::uint32_t>(first.y) << 16;
    own.z[q] = static_cast<std::uint32_t>(first.z);
    there |= 1u << q;
  }
  return there;
}

// Appends the marked particles to the list, those of a warp together and in order.
__device__ __forceinline__ void append_marked(unsigned marked, std::uint16_t* list, unsigned* length) {
  const unsigned lane = threadIdx.x % kWarpSize;
  unsigned of_warp = 0, at = 0;
#pragma unroll
  for (unsigned q = 0; q < kPerThread; ++q) of_warp += __popc(__ballot_sync(kAllLanes, marked >> q & 1u));
  if (of_warp == 0) return;
  if (lane == 0) at = atomicAdd(length, of_warp);
  at = __shfl_sync(kAllLanes, at, 0);
#pragma unroll
  for (unsigned q = 0; q < kPerThread; ++q) {
    const unsigned lanes = __ballot_sync(kAllLanes, marked >> q & 1u);
    if (marked >> q & 1u) list[at + __popc(lanes & ((1u << lane) - 1))] = static_cast<std::uint16_t>(own_index(q));
    at += __popc(lanes);
  }
}

// The marked particles whose clouds fit the tile.
template <int S>
__device__ __forceinline__ unsigned fitting(const OwnParticles& own, unsigned marked, const TileTarget& tile) {
  unsigned fit = 0;
#pragma unroll
  for (unsigned q = 0; q < kPerThread; ++q) {
    const Cell3 at = tile.within({static_cast<std::int32_t>(own.xy[q] & 0xffffu),
                                  static_cast<std::int32_t>(own.xy[q] >> 16), static_cast<std::int32_t>(own.z[q])});
    constexpr int kLast = kTileSide - S;
    if ((marked >> q & 1u) && at.x <= kLast && at.y <= kLast && at.z <= kLast) fit |= 1u << q;
  }
  return fit;
}

template <int S>
constexpr std::size_t assign_shared_bytes() {
  return 4 * (2 * kTileWords + kAssignWarps * CloudLanes<S>::kWords * kStageRow) + 2 * kChunk;
}

template <int S>
__global__ void __launch_bounds__(kAssignThreads, 3) assign_kernel(AssignJob job) {
  __shared__ unsigned first_left, length;
  std::uint32_t* const words = dynamic_shared<std::uint32_t>();
  constexpr unsigned kStage = CloudLanes<S>::kWords * kStageRow;
  const unsigned thread = threadIdx.x;
  std::uint32_t* const stage = words + 2 * kTileWords + thread / kWarpSize * kStage;
  auto* const list = reinterpret_cast<std::uint16_t*>(words + 2 * kTileWords + kAssignWarps * kStage);
  const std::size_t chunk_first = static_cast<std::size_t>(blockIdx.x) * kChunk;
  const SourceParticle* const chunk = job.particles + chunk_first;
  for (unsigned i = thread; i < 2 * kTileWords; i += kAssignThreads) words[i] = 0;

  OwnParticles own;
  // Of this thread's particles: not looked at yet, and those for the mesh itself.
  unsigned left = load_own<S>(job, chunk_first, own), rest = 0;

  TileTarget tile{words, {0, 0, 0}, job.m};
  for (unsigned misses = 0;;) {
    if (thread == 0) first_left = kChunk, length = 0;
    __syncthreads();
    const unsigned mine = __reduce_min_sync(kAllLanes, left ? own_index(__ffs(static_cast<int>(left)) - 1) : kChunk);
    if (thread % kWarpSize == 0 && mine < kChunk) atomicMin(&first_left, mine);
    __syncthreads();
    const unsigned pick = first_left;
    if (pick == kChunk) break;
    if (misses == kMaxMisses) {
      rest |= left;
      break;
    }
    tile.origin = tile_origin<S>(job, chunk[pick]);
    const unsigned fit = fitting<S>(own, left, tile);
    append_marked(fit, list, &length);
    __syncthreads();
    const unsigned count = length;
    left &= ~fit;
    if (count < kFewest) {
      rest |= fit;
      ++misses;
      __syncthreads();  // the length has been read
      continue;
    }
    add_share<S>(job, tile, chunk, list, count, stage);
    __syncthreads();
    flush_tile(job, tile);
  }

  // The length is 0 here, and the barrier behind it lies between.
  append_marked(rest, list, &length);
  __syncthreads();
  add_share<S>(job, MeshTarget{job.counts, job.m}, chunk, list, length, stage);
}

template <int S>
void launch_assign(const Stream& stream, AssignJob job) {
  const int room = kTileSide - S;
  const auto side = static_cast<int>(job.m);
  const auto along = [&](int level) { return (side + (1 << level) - 1) >> level; };  // cells of a tile, rounded up
  while (along(job.level) > room) ++job.level;
  job.margin = (room - along(job.level)) / 2;
  const auto grid = static_cast<unsigned>((job.n + kChunk - 1) / kChunk);
  launch_blocks(stream, "mesh.assign", {grid, kAssignThreads, assign_shared_bytes<S>()}, assign_kernel<S>, job);
}

// Adds all particles to `counts`, m^3 quanta of mass, last axis contiguous, m from 8 to 65535; `half_cells` is 1 for the
// mesh on which particles stand half a cell further. The sums are exact.
inline void assign_counts(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                          int m, Assignment cloud, std::uint32_t half_cells, Count* counts) {
  const AssignJob job{particles, n, counts, static_cast<std::uint32_t>(m), half_cells, unit.bits, unit.equal_units,
                      unit.units_per_mass, 0, 0};
  if (cloud == Assignment::kCic) launch_assign<2>(stream, job);
  if (cloud == Assignment::kTsc) launch_assign<3>(stream, job);
  if (cloud == Assignment::kPcs) launch_assign<4>(stream, job);
}

}  // namespace maki::cuda
