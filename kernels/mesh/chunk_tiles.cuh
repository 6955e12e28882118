// How a block of threads processes a chunk of consecutive particles tile by tile of the mesh, for mass assignment and
// interpolation.
//
// In Morton order a chunk lies in a few tiles. The block picks the first remaining particle, gathers all of the chunk
// whose clouds fit a tile around it, processes them there, and goes on with the next tile. Particles with too few
// neighbours (one that drifted far since the sort, a void) are processed last, without a tile. So any order of
// particles gives the right result, and Morton order is fast.
//
// Memory holds a box of the mesh's cells (MeshBox), and cells are numbered from the box's origin throughout: numbers
// are in [0, m) on each axis, and within the box for the cells that any cloud touches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/launch.cuh"
#include "kernels/mesh/cloud.hpp"
#include "kernels/mesh/mesh.hpp"
#include "kernels/particles/types.hpp"

namespace maki::cuda {

// A block's threads are a multiple of this; a chunk is kPerThread particles for each thread.
inline constexpr unsigned kChunkThreads = 256;
inline constexpr unsigned kPerThread = 8;
template <unsigned kThreads>
inline constexpr unsigned kChunk = kThreads* kPerThread;
inline constexpr unsigned kFewest = 64;     // particles that justify a tile
inline constexpr unsigned kMaxMisses = 16;  // unsuccessful tiles before the rest goes without
// A tile is 16^3 cells. With rows of 20 words and planes of 336, the cells of two planes of a 4^3 cloud lie in 32
// banks.
inline constexpr int kTileSide = 16, kTileRow = 20, kTilePlane = 336;
inline constexpr unsigned kTileWords = kTileSide * kTilePlane;

struct Cell3 {
  std::int32_t x, y, z;
};

struct ChunkJob {
  const SourceParticle* particles;
  std::size_t n;
  std::uint32_t m, half_cells;
  int level;             // 2^level tiles along each axis: Morton cells, where sorted particles lie together
  int margin;            // cells of a tile below its Morton cell
  Cell3 origin, extent;  // of the box
};

// For clouds of S^3 cells on a mesh of m^3, m from 8 to 65535; half_cells is 1 for the shifted mesh of interlacing
// (particles at +1/2 cell).
template <int S>
ChunkJob chunk_job(const SourceParticle* particles, std::size_t n, const MeshBox& box, std::uint32_t half_cells) {
  const int m = box.cells;
  constexpr int room = kTileSide - S;  // the last place in a tile for the first cell of a cloud
  int level = 0, along = m;            // cells of a Morton cell, rounded up
  while (along > room) along = (m + (1 << ++level) - 1) >> level;
  return {particles,
          n,
          static_cast<std::uint32_t>(m),
          half_cells,
          level,
          (room - along) / 2,
          {box.origin[0], box.origin[1], box.origin[2]},
          {box.extent[0], box.extent[1], box.extent[2]}};
}

template <unsigned kThreads>
unsigned chunk_count(std::size_t n) {
  return static_cast<unsigned>((n + kChunk<kThreads> - 1) / kChunk<kThreads>);
}

__device__ __forceinline__ std::int32_t wrapped_once(std::int32_t cell, std::uint32_t m) {
  const auto side = static_cast<std::int32_t>(m);
  return cell < 0 ? cell + side : cell >= side ? cell - side : cell;
}

// The index of one of the box's lines along z.
__device__ __forceinline__ std::uint32_t line_of(std::int32_t x, std::int32_t y, const Cell3& extent) {
  return static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(extent.y) + static_cast<std::uint32_t>(y);
}

__device__ __forceinline__ bool within_box(const Cell3& cell, const Cell3& extent) {
  return cell.x < extent.x && cell.y < extent.y && cell.z < extent.z;
}

// The first cell of a particle's cloud, in [0, m) on each axis.
template <int S>
__device__ __forceinline__ Cell3 first_cell(const ChunkJob& job, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return {wrapped_once(mesh_position<S>(x, job.m, job.half_cells).first - job.origin.x, job.m),
          wrapped_once(mesh_position<S>(y, job.m, job.half_cells).first - job.origin.y, job.m),
          wrapped_once(mesh_position<S>(z, job.m, job.half_cells).first - job.origin.z, job.m)};
}

// The first cell of the tile that belongs to a particle.
template <int S>
__device__ __forceinline__ Cell3 tile_origin(const ChunkJob& job, const SourceParticle& p) {
  const std::uint32_t mask = job.level == 0 ? 0u : ~0u << (32 - job.level);
  const Cell3 low = first_cell<S>(job, p.x & mask, p.y & mask, p.z & mask);
  return {wrapped_once(low.x - job.margin, job.m), wrapped_once(low.y - job.margin, job.m),
          wrapped_once(low.z - job.margin, job.m)};
}

// The place of a cell of the mesh within the tile at `origin`; both in [0, m) on each axis.
__device__ __forceinline__ Cell3 within_tile(const Cell3& origin, const Cell3& cell, std::uint32_t m) {
  return {wrapped_once(cell.x - origin.x, m), wrapped_once(cell.y - origin.y, m), wrapped_once(cell.z - origin.z, m)};
}

__device__ __forceinline__ std::uint32_t tile_word(const Cell3& at) {
  return static_cast<std::uint32_t>(at.x * kTilePlane + at.y * kTileRow + at.z);
}

// visit(word of the tile, cell of the box) for all cells of the tile. A thread has one y and z and successive planes in
// x; neighbouring threads have neighbouring z.
template <unsigned kThreads, class Visit>
__device__ __forceinline__ void visit_cells(const Cell3& origin, std::uint32_t m, const Visit& visit) {
  constexpr int kLines = kTileSide * kTileSide, kPlanes = kTileSide * kLines / static_cast<int>(kThreads);
  static_assert(kPlanes * static_cast<int>(kThreads) == kTileSide * kLines);
  const int line = static_cast<int>(threadIdx.x) % kLines, first = static_cast<int>(threadIdx.x) / kLines * kPlanes;
  const int tile_y = line / kTileSide, tile_z = line % kTileSide;
  const auto side = static_cast<std::int32_t>(m);
  Cell3 cell{origin.x + first, origin.y + tile_y, origin.z + tile_z};
  while (cell.x >= side) cell.x -= side;
  while (cell.y >= side) cell.y -= side;  // more than once where the mesh is smaller than the tile
  while (cell.z >= side) cell.z -= side;
#pragma unroll 8
  for (int tile_x = first; tile_x < first + kPlanes; ++tile_x) {
    visit(tile_word({tile_x, tile_y, tile_z}), cell);
    cell.x = cell.x + 1 == side ? 0 : cell.x + 1;
  }
}

// A thread's particles of the chunk: lane + 32 q of its warp's 256, q = 0 ... 7; one bit of a mask each.
struct OwnParticles {
  std::uint32_t xy[kPerThread], z[kPerThread];  // first cells of the clouds
};

__device__ __forceinline__ unsigned own_index(unsigned q) {
  return threadIdx.x / kWarpSize * (kWarpSize * kPerThread) + q * kWarpSize + threadIdx.x % kWarpSize;
}

// Loads this thread's particles; returns the mask of those that exist.
template <int S>
__device__ __forceinline__ unsigned load_own(const ChunkJob& job, std::size_t chunk_first, OwnParticles& own) {
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

// Appends the marked particles to the list, in order and contiguously for each warp.
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
__device__ __forceinline__ unsigned fitting(const OwnParticles& own, unsigned marked, const Cell3& origin,
                                            std::uint32_t m) {
  unsigned fit = 0;
#pragma unroll
  for (unsigned q = 0; q < kPerThread; ++q) {
    const Cell3 at = within_tile(origin,
                                 {static_cast<std::int32_t>(own.xy[q] & 0xffffu),
                                  static_cast<std::int32_t>(own.xy[q] >> 16), static_cast<std::int32_t>(own.z[q])},
                                 m);
    constexpr int kLast = kTileSide - S;
    if ((marked >> q & 1u) && at.x <= kLast && at.y <= kLast && at.z <= kLast) fit |= 1u << q;
  }
  return fit;
}

// Calls, with all kThreads threads of the block each time,
//   worker.in_tile(origin, chunk, count): particles chunk[list[0, count)] have their clouds in the tile at `origin`;
//   worker.without_tile(chunk, count), once and last.
// With a barrier before and after each call. `list` is in shared memory, with room for kChunk items.
template <int S, unsigned kThreads, class Worker>
__device__ __forceinline__ void visit_tiles(const ChunkJob& job, std::uint16_t* list, const Worker& worker) {
  constexpr unsigned kItems = kChunk<kThreads>;
  __shared__ unsigned first_left, length;
  const std::size_t chunk_first = static_cast<std::size_t>(blockIdx.x) * kItems;
  const SourceParticle* const chunk = job.particles + chunk_first;
  OwnParticles own;
  // Masks of this thread's particles: those not examined yet, and those that get no tile.
  unsigned left = load_own<S>(job, chunk_first, own), rest = 0;
  for (unsigned misses = 0;;) {
    if (threadIdx.x == 0) first_left = kItems, length = 0;
    __syncthreads();
    const unsigned mine = __reduce_min_sync(kAllLanes, left ? own_index(__ffs(static_cast<int>(left)) - 1) : kItems);
    if (threadIdx.x % kWarpSize == 0 && mine < kItems) atomicMin(&first_left, mine);
    __syncthreads();
    const unsigned pick = first_left;
    if (pick == kItems) break;
    if (misses == kMaxMisses) {
      rest |= left;
      break;
    }
    const Cell3 origin = tile_origin<S>(job, chunk[pick]);
    const unsigned fit = fitting<S>(own, left, origin, job.m);
    append_marked(fit, list, &length);
    __syncthreads();
    const unsigned count = length;
    left &= ~fit;
    if (count < kFewest) {
      rest |= fit;
      ++misses;
    } else {
      worker.in_tile(origin, chunk, count);
    }
    __syncthreads();  // length and list have been read
  }
  // The length is 0 here, and a barrier follows.
  append_marked(rest, list, &length);
  __syncthreads();
  worker.without_tile(chunk, length);
}

}  // namespace maki::cuda
