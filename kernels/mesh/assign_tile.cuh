// Where tiled mass assignment (assign_cuda.cuh) puts clouds: a tile of the mesh in shared memory, or the mesh itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/mesh/chunk_tiles.cuh"

namespace maki::cuda {

using Count = unsigned long long;

inline constexpr unsigned kStageRow = kWarpSize + 1;  // one word beyond, so that a column lies in different banks

struct AssignJob {
  ChunkJob chunks;
  Count* counts;  // of the box, last axis contiguous
  int bits;       // MassUnit
  std::uint32_t equal_units;
  double units_per_mass;
  Count half, kept;  // MassUnit::shed_bits
};

// The lanes of a cloud of S^3 cells: a lane takes cell (x, y, z) of the cloud, and for S = 4 also (x + 2, y, z).
template <int S>
struct CloudLanes {
  static constexpr unsigned kLanes = S == 2 ? 8 : 32;             // a particle
  static constexpr unsigned kTogether = kWarpSize / kLanes;       // particles at a time
  static constexpr int kCells = S == 4 ? 2 : 1;                   // a lane
  static constexpr unsigned kRows = S * S, kWeights = kRows + S;  // staged words: units of rows, weights along z,
  static constexpr unsigned kWords = kWeights + 2;                // and the place, for one particle
};

// A cloud's cells beginning at `place`, added to a tile in shared memory.
struct TileTarget {
  std::uint32_t* low;  // kTileWords, and as many upper words behind them
  Cell3 origin;
  std::uint32_t m;

  struct Place {
    std::uint32_t word;
    __device__ bool operator==(const Place& o) const { return word == o.word; }
  };
  __device__ __forceinline__ void stage(const Cell3& first, std::uint32_t* words) const {
    words[0] = tile_word(within_tile(origin, first, m));
  }
  static __device__ __forceinline__ Place staged(const std::uint32_t* words) { return {words[0]}; }

  // `cell` is the lane's. The low words first: their answers arrive together.
  template <int S>
  __device__ __forceinline__ void add(const Place& place, const Cell3& cell,
                                      const Count (&sum)[CloudLanes<S>::kCells]) const {
    constexpr int kCells = CloudLanes<S>::kCells;
    std::uint32_t* const at = low + tile_word(cell) + place.word;
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
  Cell3 extent;

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
      const std::size_t line = line_of(x, y, extent);
      atomicAdd(counts + line * static_cast<std::uint32_t>(extent.z) + static_cast<std::uint32_t>(z), sum[c]);
    }
  }
};

// Adds the tile to the mesh and leaves it empty. Cells of the tile beyond the box hold nothing.
struct FlushCell {
  std::uint32_t* low;
  Count* counts;
  Cell3 extent;

  __device__ __forceinline__ void operator()(std::uint32_t word, const Cell3& cell) const {
    const std::uint32_t lower = low[word], upper = low[kTileWords + word];
    if (!(lower | upper)) return;
    const std::size_t line = line_of(cell.x, cell.y, extent);
    atomicAdd(counts + line * static_cast<std::uint32_t>(extent.z) + static_cast<std::uint32_t>(cell.z),
              static_cast<Count>(upper) << 32 | lower);
    low[word] = low[kTileWords + word] = 0;
  }
};

}  // namespace maki::cuda
