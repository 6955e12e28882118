// Where tiled mass assignment (assign_cuda.cuh) puts clouds: a tile of the mesh in shared memory, or the mesh itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/cooperative.cuh"
#include "kernels/mesh/cloud.hpp"
#include "kernels/particles/types.hpp"

namespace maki::cuda {

using Count = unsigned long long;

inline constexpr unsigned kAssignThreads = 256;
inline constexpr unsigned kAssignWarps = kAssignThreads / kWarpSize;
// A tile is 16^3 cells. With rows of 20 words and planes of 336, the cells of two planes of a 4^3 cloud lie in 32 banks.
inline constexpr int kTileSide = 16, kTileRow = 20, kTilePlane = 336;
inline constexpr unsigned kTileWords = kTileSide * kTilePlane;
inline constexpr unsigned kStageRow = kWarpSize + 1;  // one word beyond, so that a column lies in different banks

struct AssignJob {
  const SourceParticle* particles;
  std::size_t n;
  Count* counts;  // m^3, last axis contiguous
  std::uint32_t m, half_cells;
  int bits;  // MassUnit
  std::uint32_t equal_units;
  double units_per_mass;
  int level;   // 2^level tiles along each axis: Morton cells, where sorted particles lie together
  int margin;  // cells that a tile has to spare below them
};

// Which lanes do what with a cloud of S^3 cells: a lane takes cell (x, y, z) of it, and of 4^3 also (x + 2, y, z).
template <int S>
struct CloudLanes {
  static constexpr unsigned kLanes = S == 2 ? 8 : 32;             // a particle
  static constexpr unsigned kTogether = kWarpSize / kLanes;       // particles at a time
  static constexpr int kCells = S == 4 ? 2 : 1;                   // a lane
  static constexpr unsigned kRows = S * S, kWeights = kRows + S;  // staged words: units of rows, weights along z,
  static constexpr unsigned kWords = kWeights + 2;                // and the place, for one particle
};

struct Cell3 {
  std::int32_t x, y, z;
};

__device__ __forceinline__ std::int32_t wrapped_once(std::int32_t cell, std::uint32_t m) {
  const auto side = static_cast<std::int32_t>(m);
  return cell < 0 ? cell + side : cell >= side ? cell - side : cell;
}

// The first cell of a particle's cloud, in [0, m) on each axis.
template <int S>
__device__ __forceinline__ Cell3 first_cell(const AssignJob& job, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return {wrapped_once(mesh_position<S>(x, job.m, job.half_cells).first, job.m),
          wrapped_once(mesh_position<S>(y, job.m, job.half_cells).first, job.m),
          wrapped_once(mesh_position<S>(z, job.m, job.half_cells).first, job.m)};
}

// The first cell of the tile that belongs to a particle.
template <int S>
__device__ __forceinline__ Cell3 tile_origin(const AssignJob& job, const SourceParticle& p) {
  const std::uint32_t mask = job.level == 0 ? 0u : ~0u << (32 - job.level);
  const Cell3 low = first_cell<S>(job, p.x & mask, p.y & mask, p.z & mask);
  return {wrapped_once(low.x - job.margin, job.m), wrapped_once(low.y - job.margin, job.m),
          wrapped_once(low.z - job.margin, job.m)};
}

// A cloud's cells beginning at `place`, added to a tile in shared memory.
struct TileTarget {
  std::uint32_t* low;  // kTileWords, and as many upper words behind them
  Cell3 origin;
  std::uint32_t m;

  struct Place {
    std::uint32_t word;
    __device__ bool operator==(const Place& o) const { return word == o.word; }
  };
  __device__ __forceinline__ Cell3 within(const Cell3& first) const {
    return {wrapped_once(first.x - origin.x, m), wrapped_once(first.y - origin.y, m),
            wrapped_once(first.z - origin.z, m)};
  }
  static __device__ __forceinline__ std::uint32_t word(std::int32_t x, std::int32_t y, std::int32_t z) {
    return static_cast<std::uint32_t>(x * kTilePlane + y * kTileRow + z);
  }
  __device__ __forceinline__ void stage(const Cell3& first, std::uint32_t* words) const {
    const Cell3 at = within(first);
    words[0] = word(at.x, at.y, at.z);
  }
  static __device__ __forceinline__ Place staged(const std::uint32_t* words) { return {words[0]}; }

  // `cell` is the lane's. The low words first: their answers arrive together.
  template <int S>
  __device__ __forceinline__ void add(const Place& place, const Cell3& cell,
                                      const Count (&sum)[CloudLanes<S>::kCells]) const {
    constexpr int kCells = CloudLanes<S>::kCells;
    std::uint32_t* const at = low + word(cell.x, cell.y, cell.z) + place.word;
    std::uint32_t upper[kCells];
#pragma unroll
    for (int c = 0; c < kCells; ++c) {
      const auto lower = static_cast<std::uint32_t>(sum[c]);
      const std::uint32_t before = atomicAdd(at + 2 * c * kTilePlane, lower);
      upper[c] = static_cast<std::uint32_t>(sum[c] >> 32) + (before + lower < lower ? 1u : 0u);
    }
#pragma unroll
    for (int c = 0; c < kCells; ++c) atomicAdd(at + kTileWords + 2 * c * kTilePlane, upper[c]);
  }
};

// The same, added to the mesh itself.
struct MeshTarget {
  Count* counts;
  std::uint32_t m;

  struct Place {
    std::uint32_t xy, z;
    __device__ bool operator==(const Place& o) const { return xy == o.xy && z == o.z; }
  };
  __device__ __forceinline__ void stage(const Cell3& first, std::uint32_t* words) const {
    words[0] = static_cast<std::uint32_t>(first.x) | static_cast<std::uint32_t>(first.y) << 16;
    words[kStageRow] = static_cast<std::uint32_t>(first.z);
  }
  static __device__ __forceinline__ Place staged(const std::uint32_t* words) { return {words[0], words[kStageRow]}; }

  template <int S>
  __device__ __forceinline__ void add(const Place& place, const Cell3& cell,
                                      const Count (&sum)[CloudLanes<S>::kCells]) const {
    const std::int32_t y = wrapped_once(static_cast<std::int32_t>(place.xy >> 16) + cell.y, m);
    const std::int32_t z = wrapped_once(static_cast<std::int32_t>(place.z) + cell.z, m);
#pragma unroll
    for (int c = 0; c < CloudLanes<S>::kCells; ++c) {
      const std::int32_t x = wrapped_once(static_cast<std::int32_t>(place.xy & 0xffffu) + cell.x + 2 * c, m);
      const std::size_t row = static_cast<std::size_t>(x) * m + static_cast<std::uint32_t>(y);
      atomicAdd(counts + row * m + static_cast<std::uint32_t>(z), sum[c]);
    }
  }
};

// Adds the tile to the mesh and leaves it empty. Each thread takes the cells of one y and z.
__device__ __forceinline__ void flush_tile(const AssignJob& job, const TileTarget& tile) {
  static_assert(kAssignThreads == kTileSide * kTileSide);
  const int tile_y = static_cast<int>(threadIdx.x) / kTileSide, tile_z = static_cast<int>(threadIdx.x) % kTileSide;
  const auto side = static_cast<std::int32_t>(job.m);
  std::int32_t x = tile.origin.x, y = tile.origin.y + tile_y, z = tile.origin.z + tile_z;
  while (y >= side) y -= side;  // more than once where the mesh is smaller than the tile
  while (z >= side) z -= side;
  Count* const column = job.counts + static_cast<std::size_t>(y) * job.m + static_cast<std::uint32_t>(z);
  const std::size_t plane = static_cast<std::size_t>(job.m) * job.m;
  for (int tile_x = 0; tile_x < kTileSide; ++tile_x) {
    const std::uint32_t at = TileTarget::word(tile_x, tile_y, tile_z);
    const std::uint32_t lower = tile.low[at], upper = tile.low[kTileWords + at];
    if (lower | upper) {
      atomicAdd(column + static_cast<std::size_t>(x) * plane, static_cast<Count>(upper) << 32 | lower);
      tile.low[at] = tile.low[kTileWords + at] = 0;
    }
    x = x + 1 == side ? 0 : x + 1;
  }
}

}  // namespace maki::cuda
