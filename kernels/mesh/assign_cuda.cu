// Mass assignment on the GPU: tiles of the mesh in shared memory (chunk_tiles.cuh), exact integers.
//
// A count has 64 bits. In a tile it is two arrays of 32-bit words: the atomic add to the low word returns the old
// value, which gives the carry (64-bit atomics in shared memory become a loop). The tile's non-zero cells are then
// added to the mesh.
//
// The lanes of a warp take the cells of one particle's cloud (8 lanes for a cloud of 2^3 cells), not one particle each:
// so they add to different cells in different banks, however clustered the particles are. Each lane keeps its sum in
// registers while the next particle has the same cells, so thousands of particles in a cell cost a handful of atomics.
// Weights are computed one particle a lane, 32 at a time, and passed through shared memory.
#include "kernels/mesh/assign.hpp"

#include <cstddef>
#include <cstdint>

#include "kernels/mesh/chunk_tiles.cuh"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/mesh.hpp"
#include "kernels/mesh/modes.cuh"

namespace maki::cuda {

// A cell's mass in quanta (MassUnit).
using Count = unsigned long long;

inline constexpr unsigned kStageRow = kWarpSize + 1;  // padded: the words of a column lie in different banks

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

// Adds a cloud's cells, the first of them at `place`, to a tile in shared memory.
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

  // `cell` is the lane's. Low words first, so that their latencies overlap.
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

// Adds a cloud's cells to the mesh itself.
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

// Adds the tile to the mesh and clears it. Cells of the tile beyond the box are zero.
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

// Fills column `lane` of the warp's stage: the units in each row of cells, the weights along z, the place.
template <int S, class Target>
__device__ __forceinline__ void stage_particle(const AssignJob& job, const Target& target, const SourceParticle& p,
                                               std::uint32_t* column) {
  using Lanes = CloudLanes<S>;
  const std::uint32_t m = job.chunks.m, half_cells = job.chunks.half_cells;
  std::uint32_t w[S], in_x[S], in_row[S];
  integer_weights<S>(mesh_position<S>(p.x, m, half_cells).fraction, job.bits, w);
  split_units<S>(units_of(p.mass, job.equal_units, job.units_per_mass), job.bits, w, in_x);
  integer_weights<S>(mesh_position<S>(p.y, m, half_cells).fraction, job.bits, w);
#pragma unroll
  for (int i = 0; i < S; ++i) {
    split_units<S>(in_x[i], job.bits, w, in_row);
#pragma unroll
    for (int j = 0; j < S; ++j) column[(i * S + j) * kStageRow] = in_row[j];
  }
  integer_weights<S>(mesh_position<S>(p.z, m, half_cells).fraction, job.bits, w);
#pragma unroll
  for (int k = 0; k < S; ++k) column[(Lanes::kRows + k) * kStageRow] = w[k];
  target.stage(first_cell<S>(job.chunks, p.x, p.y, p.z), column + Lanes::kWeights * kStageRow);
}

// The warp's share of the `count` particles in the list. kRounds: each contribution to a cell is rounded.
template <int S, bool kRounds, unsigned kThreads, class Target>
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
  constexpr unsigned kWarps = kThreads / kWarpSize;
  const unsigned warp = threadIdx.x / kWarpSize, share = (count + kWarps - 1) / kWarps;
  const unsigned begin = min(count, warp * share), end = min(count, begin + share);
  for (unsigned first = begin; first < end; first += kWarpSize) {
    const unsigned here = end - first < kWarpSize ? end - first : kWarpSize;
    __syncwarp();  // the stage has been read
    if (lane < here) stage_particle<S>(job, target, chunk[list[first + lane]], stage + lane);
    __syncwarp();
    // Neighbours in the list go to the same lanes: they are neighbours in space.
    constexpr unsigned kTurns = kWarpSize / Lanes::kTogether;
    const unsigned from = lane / Lanes::kLanes * kTurns, to = from + kTurns < here ? from + kTurns : here;
    for (unsigned p = from; p < to; ++p) {
      const typename Target::Place next = Target::staged(places + p);
      Count added[Lanes::kCells];
#pragma unroll
      for (int c = 0; c < Lanes::kCells; ++c)
        added[c] = static_cast<Count>(rows[p + static_cast<unsigned>(c) * 2 * S * kStageRow]) * weights[p];
      if constexpr (kRounds) {
#pragma unroll
        for (int c = 0; c < Lanes::kCells; ++c) added[c] = (added[c] + job.half) & job.kept;
      }
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

template <int S, bool kRounds, unsigned kThreads>
struct AssignWorker {
  const AssignJob& job;
  std::uint32_t *words, *stage;  // shared: the tile, empty between calls, and this warp's stage
  const std::uint16_t* list;

  __device__ __forceinline__ void in_tile(const Cell3& origin, const SourceParticle* chunk, unsigned count) const {
    const std::uint32_t m = job.chunks.m;
    add_share<S, kRounds, kThreads>(job, TileTarget{words, origin, m}, chunk, list, count, stage);
    __syncthreads();
    visit_cells<kThreads>(origin, m, FlushCell{words, job.counts, job.chunks.extent});
  }
  __device__ __forceinline__ void without_tile(const SourceParticle* chunk, unsigned count) const {
    add_share<S, kRounds, kThreads>(job, MeshTarget{job.counts, job.chunks.m, job.chunks.extent}, chunk, list, count,
                                    stage);
  }
};

// Words of shared memory: the tile, the warps' stages, the list of 16-bit indices.
template <int S>
inline constexpr unsigned kStageWords = CloudLanes<S>::kWords* kStageRow;
template <int S, unsigned kThreads>
inline constexpr unsigned kAssignWords = 2 * kTileWords + kThreads / kWarpSize* kStageWords<S> + kChunk<kThreads> / 2;

template <int S, bool kRounds, unsigned kThreads>
__global__ void __launch_bounds__(kThreads, kThreads == kChunkThreads ? 3 : 1) assign_kernel(AssignJob job) {
  std::uint32_t* const words = dynamic_shared<std::uint32_t>();
  std::uint32_t* const stages = words + 2 * kTileWords;
  auto* const list = reinterpret_cast<std::uint16_t*>(stages + kThreads / kWarpSize * kStageWords<S>);
  for (unsigned i = threadIdx.x; i < 2 * kTileWords; i += kThreads) words[i] = 0;
  visit_tiles<S, kThreads>(job.chunks, list,
                           AssignWorker<S, kRounds, kThreads>{job, words,
                                                              stages + threadIdx.x / kWarpSize * kStageWords<S>, list});
}

template <int S, unsigned kThreads>
void launch_assign(const Stream& stream, const AssignJob& job) {
  launch_blocks(stream, "mesh.assign", {chunk_count<kThreads>(job.chunks.n), kThreads, 4 * kAssignWords<S, kThreads>},
                job.half ? assign_kernel<S, true, kThreads> : assign_kernel<S, false, kThreads>, job);
}

// Threads of a block: 512 for one that is alone on its multiprocessor, else 256. For clouds of 4^3 cells two blocks of
// 70 kB need 142 kB, which compute capability 8.6, 8.9 and 12.0 do not have, while one of 98 kB fits. Elsewhere two or
// three blocks of 256 share a multiprocessor, whose registers do not suffice for two of 512.
template <int S>
void launch_assign(const Stream& stream, const AssignJob& job) {
  constexpr unsigned kTwice = 2 * kChunkThreads;
  if constexpr (S == 4) {
    if (blocks_with_shared_memory(4 * kAssignWords<S, kChunkThreads>) == 1 &&
        blocks_with_shared_memory(4 * kAssignWords<S, kTwice>) == 1)
      return launch_assign<S, kTwice>(stream, job);
  }
  launch_assign<S, kChunkThreads>(stream, job);
}

// A cell's mass less the mean, from its count of quanta.
struct MassOfCount {
  std::uint64_t half, kept;  // MassUnit::rounded()
  std::int64_t mean;
  float quantum;

  explicit MassOfCount(const MassUnit& unit)
      : half(MassUnit::half_of(unit.dropped_bits)), kept(MassUnit::kept_of(unit.dropped_bits)), mean(unit.mean),
        quantum(static_cast<float>(unit.quantum)) {}
  MAKI_HD float operator()(std::uint64_t count) const {
    return static_cast<float>(static_cast<std::int64_t>((count + half) & kept) - mean) * quantum;
  }
};

}  // namespace maki::cuda

namespace maki {
namespace {

struct CountsToMasses {
  const std::uint64_t* counts;
  float* mesh;
  std::size_t count_plane, count_row, mesh_plane, mesh_row;
  cuda::MassOfCount mass;

  struct Row {
    const std::uint64_t* counts;
    float* mesh;
  };
  MAKI_HD Row begin(int x, int y) const {
    const auto i = static_cast<std::size_t>(x), j = static_cast<std::size_t>(y);
    return {counts + count_plane * i + count_row * j, mesh + mesh_plane * i + mesh_row * j};
  }
  MAKI_HD void at(const Row& row, int z, std::size_t) const { row.mesh[z] = mass(row.counts[z]); }
};

}  // namespace

struct MassCounter::Work {
  const SourceParticle* particles = nullptr;
  std::size_t n = 0;
  MassUnit unit;
  MeshBox box;
};

MassCounter::MassCounter(Assignment cloud) : cloud_(cloud), work_(std::make_unique<Work>()) {}
MassCounter::~MassCounter() = default;

void MassCounter::take(const Stream&, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                       const MeshBox& box) {
  *work_ = {particles, n, unit, box};
}

void MassCounter::count(const Stream& stream, bool shifted, std::uint64_t* counts, bool zero) {
  const Work& w = *work_;
  static_assert(sizeof(cuda::Count) == sizeof(std::uint64_t));
  if (!zero) fill_zero(stream, counts, w.box.size() * sizeof(std::uint64_t));
  for_cloud(cloud_, [&]<int S>() {
    cuda::launch_assign<S>(stream, {cuda::chunk_job<S>(w.particles, w.n, w.box, shifted ? 1 : 0),
                                    reinterpret_cast<cuda::Count*>(counts), w.unit.bits, w.unit.equal_units,
                                    w.unit.units_per_mass, MassUnit::half_of(w.unit.shed_bits),
                                    MassUnit::kept_of(w.unit.shed_bits)});
  });
}

std::vector<std::uint8_t> MassCounter::planes() const {
  return std::vector<std::uint8_t>(static_cast<std::size_t>(work_->box.cells), 1);
}

void MassCounter::count(const Stream& stream, bool shifted, std::uint64_t* counts, const OwnRows&) {
  count(stream, shifted, counts);
}

bool MassCounter::makes_masses() { return false; }

double counter_bytes(double, double) { return 0; }

// `done` is not read: on the GPU count() leaves all rows to this function.
bool counts_to_masses(const Stream& stream, const CountBox& box, const MassUnit& unit, std::uint64_t* counts,
                      float* mesh, const std::uint8_t*) {
  const int length = static_cast<int>(box.count[2]);
  const auto& [plane, row] = box.count_steps;
  launch_rows(stream, "mesh.to_masses", {0, 0, static_cast<int>(box.count[0]), static_cast<int>(box.count[1])}, length,
              length,
              CountsToMasses{counts + box.first[0] * plane + box.first[1] * row + box.first[2], mesh + box.mesh_first,
                             plane, row, box.mesh_steps[0], box.mesh_steps[1], cuda::MassOfCount(unit)});
  return false;
}

}  // namespace maki
