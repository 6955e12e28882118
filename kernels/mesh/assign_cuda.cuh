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
#include "kernels/mesh/cloud.hpp"

namespace maki::cuda {

using Count = unsigned long long;

inline constexpr unsigned kAssignThreads = 256;
inline constexpr unsigned kAssignWarps = kAssignThreads / kWarpSize;
inline constexpr unsigned kChunk = 2048;  // particles a block
inline constexpr unsigned kPerThread = kChunk / kAssignThreads;
inline constexpr unsigned kFewest = 64;   // particles that are worth a tile
inline constexpr unsigned kMaxMisses = 16;  // tiles in vain; then all that is left goes to the mesh directly
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

// One warp adds the particles list[begin, end) of the chunk. All lanes have the same arguments.
template <int S, class Target>
__device__ __forceinline__ void add_share(const AssignJob& job, const Target& target, const SourceParticle* chunk,
                                          const std::uint16_t* list, unsigned begin, unsigned end,
                                          std::uint32_t* stage) {
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
      Count share[Lanes::kCells];
#pragma unroll
      for (int c = 0; c < Lanes::kCells; ++c)
        share[c] = static_cast<Count>(rows[p + static_cast<unsigned>(c) * 2 * S * kStageRow]) * weights[p];
      if (any && active && !(next == place)) {
        target.template add<S>(place, cell, sum);
#pragma unroll
        for (int c = 0; c < Lanes::kCells; ++c) sum[c] = 0;
      }
      place = next;
      any = true;
#pragma unroll
      for (int c = 0; c < Lanes::kCells; ++c) sum[c] += share[c];
    }
  }
  if (any && active) target.template add<S>(place, cell, sum);
}

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

// A thread's particles of the chunk: lane + 32 q of its warp's 256, q = 0 ... 7, a bit of a mask for each.
struct OwnParticles {
  std::uint32_t xy[kPerThread], z[kPerThread];  // first cells of the clouds
};

__device__ __forceinline__ unsigned own_index(unsigned q) {
  return threadIdx.x / kWarpSize * (kWarpSize * kPerThread) + q * kWarpSize + threadIdx.x % kWarpSize;
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
  const unsigned thread = threadIdx.x, warp = thread / kWarpSize;
  std::uint32_t* const stage = words + 2 * kTileWords + warp * kStage;
  auto* const list = reinterpret_cast<std::uint16_t*>(words + 2 * kTileWords + kAssignWarps * kStage);
  const std::size_t chunk_first = static_cast<std::size_t>(blockIdx.x) * kChunk;
  const SourceParticle* const chunk = job.particles + chunk_first;
  for (unsigned i = thread; i < 2 * kTileWords; i += kAssignThreads) words[i] = 0;

  OwnParticles own;
  unsigned left = 0, rest = 0;  // of this thread's particles: not looked at yet, and those for the mesh itself
#pragma unroll
  for (unsigned q = 0; q < kPerThread; ++q) {
    own.xy[q] = own.z[q] = 0;
    if (chunk_first + own_index(q) >= job.n) continue;
    const SourceParticle p = chunk[own_index(q)];
    const Cell3 first = first_cell<S>(job, p.x, p.y, p.z);
    own.xy[q] = static_cast<std::uint32_t>(first.x) | static_cast<std::uint32_t>(first.y) << 16;
    own.z[q] = static_cast<std::uint32_t>(first.z);
    left |= 1u << q;
  }

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
    const unsigned count = length, share = (count + kAssignWarps - 1) / kAssignWarps;
    left &= ~fit;
    if (count < kFewest) {
      rest |= fit;
      ++misses;
      __syncthreads();  // the length has been read
      continue;
    }
    add_share<S>(job, tile, chunk, list, min(count, warp * share), min(count, (warp + 1) * share), stage);
    __syncthreads();
    flush_tile(job, tile);
  }

  // The length is 0 here, and the barrier behind it lies between.
  append_marked(rest, list, &length);
  __syncthreads();
  const unsigned count = length, share = (count + kAssignWarps - 1) / kAssignWarps;
  add_share<S>(job, MeshTarget{job.counts, job.m}, chunk, list, min(count, warp * share),
               min(count, (warp + 1) * share), stage);
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
