// The kernel of list evaluation: one block a group. The block's warps share the list and meet only at the end. Sums run
// in a fixed order, so that a list gives the same bits every time.
//
// A warp's share of a list: words become indices, then raw records. The records are copied to shared memory while the
// tile before them is evaluated, then become sources relative to the group's centre.
#pragma once

#include "kernels/force/evaluate_lanes.cuh"
#include "kernels/force/pair_formula.hpp"

namespace maki::cuda {

inline constexpr unsigned kPointTile = 64;
inline constexpr unsigned kCellTile = 32;
inline constexpr unsigned kFlushTiles = 8;  // between additions to the totals
inline constexpr float kNowhere = 0x1p20f;  // units: beyond every target

// Shared memory of one warp: no other warp uses it before the end of the list.
struct WarpShared {
  union Tile {
    PointRecord points[kPointTile];
    CellRecord cells[kCellTile];
  };
  Tile tile[2];
  float4 totals[kMostTargets];
  std::uint32_t leaf_first[kWarpSize];  // by leaf of the batch: its first particle less the particles of leaves before
  float3 reach;                         // sources farther from the group's centre on any axis are not softened
};

// Up to kMostTargets targets of a group, and the subset of lanes (LaneShape) to which this lane belongs.
struct Part {
  const PairParameters& k;
  const SourceView& sources;
  Group group;
  std::uint32_t first, count;  // targets
  unsigned subset, subsets;

  // The words name cells taken as monopoles, which the loops treat as leaves of one point each.
  bool monopoles = false;
};

__device__ __forceinline__ unsigned lane_index() { return threadIdx.x % kWarpSize; }

__device__ __forceinline__ float4 relative(const PairParameters& k, const Group& group, std::uint32_t x,
                                           std::uint32_t y, std::uint32_t z, float mass) {
  return make_float4(static_cast<float>(signed_difference(x, group.x)) * k.bits_to_unit,
                     static_cast<float>(signed_difference(y, group.y)) * k.bits_to_unit,
                     static_cast<float>(signed_difference(z, group.z)) * k.bits_to_unit, mass);
}

// Up to 32 leaves, one a lane; their particles are numbered consecutively.
struct Batch {
  std::uint32_t begin;  // of this lane's leaf among the batch's particles
  std::uint32_t count;  // of this lane's leaf; 0 where there is none
  std::uint32_t total;  // of the batch
  bool own;             // the leaf may hold targets of this part
};

__device__ __forceinline__ Batch load_batch(const Part& part, const std::uint32_t* words, unsigned n,
                                            WarpShared& shared) {
  const unsigned lane = lane_index();
  std::uint32_t first = 0;
  Batch batch{0, 0, 0, false};
  if (lane < n) {
    const std::uint32_t word = words[lane];
    first = part.monopoles ? word : part.sources.cell_first[word];
    batch.count = part.monopoles ? 1 : part.sources.cell_count[word];
    batch.own = !part.monopoles && part.sources.targets == nullptr && first < part.first + part.count &&
                part.first < first + batch.count;
  }
  std::uint32_t end = batch.count;
#pragma unroll
  for (unsigned step = 1; step < kWarpSize; step *= 2) {
    const std::uint32_t below = __shfl_up_sync(kAllLanes, end, step);
    if (lane >= step) end += below;
  }
  batch.begin = end - batch.count;
  batch.total = __shfl_sync(kAllLanes, end, kWarpSize - 1);
  const unsigned filled = __ballot_sync(kAllLanes, batch.count > 0);
  if (batch.count > 0) shared.leaf_first[__popc(filled & ((1u << lane) - 1))] = first - batch.begin;
  __syncwarp();
  return batch;
}

__device__ __forceinline__ void copy_point(const Part& part, std::uint32_t index, PointRecord& to) {
  // Both records begin with x, y, z and mass. Those of cells, 40 bytes long, are aligned to 8.
  const char* const from = part.monopoles ? reinterpret_cast<const char*>(part.sources.cells)
                                          : reinterpret_cast<const char*>(part.sources.particles);
  const std::size_t size = part.monopoles ? sizeof(CellMoments) : sizeof(SourceParticle);
  const char* const record = from + index * size;
  if (part.monopoles) {
    copy_async<8>(&to.raw.x, record);
    copy_async<8>(&to.raw.z, record + 8);
  } else {
    copy_async<16>(&to, record);
  }
}

// Starts the copies of the batch's points [pos, pos + n). A lane finds the leaf of its point by counting the leaves
// that begin at or before the point.
__device__ __forceinline__ void start_points(const Part& part, const Batch& batch, std::uint32_t pos, unsigned n,
                                             const WarpShared& shared, PointRecord* points) {
  const unsigned lane = lane_index();
  unsigned before = __popc(__ballot_sync(kAllLanes, batch.count > 0 && batch.begin < pos));
#pragma unroll
  for (unsigned row = 0; row < kPointTile; row += kWarpSize) {
    const std::uint32_t offset = batch.begin - (pos + row);
    const unsigned begins = __reduce_or_sync(kAllLanes, batch.count > 0 && offset < kWarpSize ? 1u << offset : 0u);
    if (row + lane < n) {
      const unsigned leaf = before + __popc(begins & (0xffffffffu >> (kWarpSize - 1 - lane))) - 1;
      copy_point(part, shared.leaf_first[leaf] + (pos + row + lane), points[row + lane]);
    }
    before += __popc(begins);
  }
  commit_copies();
}

// Half extents of the group's box plus the spline's support: the spline softens no source farther than that.
__device__ __forceinline__ float3 reach_of(const PairParameters& k, const Group& group) {
  const float to_unit = 1.0f / k.unit, support = 1.0f / k.spline_inverse_h, rounding = 1.0f + 0x1p-20f;
  return make_float3((group.hx * to_unit + support) * rounding, (group.hy * to_unit + support) * rounding,
                     (group.hz * to_unit + support) * rounding);
}

__device__ __forceinline__ bool is_within(const float3& reach, const float4& source) {
  return fabsf(source.x) < reach.x && fabsf(source.y) < reach.y && fabsf(source.z) < reach.z;
}

// Converts the lane's own copies, which are complete, and pads the tile up to `padded` with points of zero mass.
// Returns whether any of them may be softened by the spline.
template <class Law>
__device__ __forceinline__ bool convert_points(const Part& part, const float3& reach, unsigned n, unsigned padded,
                                               PointRecord* points) {
  bool within = false;
#pragma unroll
  for (unsigned row = 0; row < kPointTile; row += kWarpSize) {
    const unsigned slot = row + lane_index();
    if (slot < n) {
      const SourceParticle s = points[slot].raw;
      const float4 point = relative(part.k, part.group, s.x, s.y, s.z, s.mass);
      if constexpr (Law::kSpline) within = within || is_within(reach, point);
      points[slot].point = point;
    } else if (slot < padded) {
      points[slot].point = make_float4(kNowhere, 0.0f, 0.0f, 0.0f);
    }
  }
  return within;
}

// The next multiple of `multiple`; whole tiles need no division.
__device__ __forceinline__ unsigned padded_to(unsigned n, unsigned multiple, unsigned whole) {
  return n == whole ? whole : (n + multiple - 1) / multiple * multiple;
}

// A warp's evaluation of its share of the list for kPerLane targets a lane. One __syncwarp a tile: after it the tile is
// complete, and no lane reads the tile before it any more, which the next copies overwrite.
template <class Law, int kPerLane>
struct WarpSums {
  using Beyond = typename Law::Beyond;
  const Part& part;
  WarpShared& shared;
  LaneTargets<kPerLane> targets;
  unsigned tiles = 0;
  const unsigned turn, most_points, most_cells;  // points a turn of the loop; points and cells a tile

  __device__ __forceinline__ WarpSums(const Part& p, WarpShared& s, unsigned lane_in_subset, unsigned lanes)
      : part(p), shared(s), turn(kUnroll<Beyond, false> * p.subsets), most_points(kPointTile / turn * turn),
        most_cells(kCellTile / p.subsets * p.subsets) {
#pragma unroll
    for (unsigned j = 0; j < kPerLane; ++j) {
      const std::uint32_t i = min(lane_in_subset + j * lanes, part.count - 1);  // surplus places repeat the last target
      const SourceParticle t = part.sources.group_particles()[part.first + i];
      const float4 r = relative(part.k, part.group, t.x, t.y, t.z, t.mass);
      targets.x[j] = Real(r.x), targets.y[j] = Real(r.y), targets.z[j] = Real(r.z);
      shared.totals[j * kWarpSize + lane_index()] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    targets.clear();
    if constexpr (Law::kSpline) {
      if (lane_index() == 0) shared.reach = reach_of(part.k, part.group);
      __syncwarp();
    }
  }

  __device__ __forceinline__ WarpShared::Tile& tile(unsigned index) { return shared.tile[index % 2]; }
  __device__ __forceinline__ void flush() { targets.template flush<Law::kPotential>(shared.totals); }
  __device__ __forceinline__ void finish_tile() {
    if (++tiles % kFlushTiles == 0) flush();
  }

  __device__ __forceinline__ void add_leaves(const std::uint32_t* words, unsigned n) {
    for (unsigned done = 0; done < n; done += kWarpSize) {
      add_batch(load_batch(part, words + done, min(n - done, kWarpSize), shared));
    }
  }

  __device__ __forceinline__ void add_batch(const Batch& batch) {
    const unsigned most = most_points;
    start_points(part, batch, 0, min(batch.total, most), shared, tile(tiles).points);
    for (std::uint32_t pos = 0; pos < batch.total;) {
      const unsigned n = min(batch.total - pos, most), padded = padded_to(n, turn, most);
      PointRecord* points = tile(tiles).points;
      wait_copies<0>();
      const bool near = convert_points<Law>(part, shared.reach, n, padded, points);
      __syncwarp();
      const std::uint32_t next = pos + n;
      if (next < batch.total)
        start_points(part, batch, next, min(batch.total - next, most), shared, tile(tiles + 1).points);
      bool own = false;
      if constexpr (Law::kPotential)
        own = part.sources.at_points ||
              __any_sync(kAllLanes, batch.own && batch.begin < next && pos < batch.begin + batch.count);
      if (own)
        add_points<Law, Law::kPotential>(part.k, points, padded, part.subset, part.subsets, targets);
      else if (Law::kSpline && __any_sync(kAllLanes, near))
        add_points<Law, false>(part.k, points, padded, part.subset, part.subsets, targets);
      else
        add_points<Beyond, false>(part.k, points, padded, part.subset, part.subsets, targets);
      finish_tile();
      pos = next;
    }
  }

  __device__ __forceinline__ void start_cells(std::uint32_t word, unsigned n, CellRecord* cells) {
    if (lane_index() < n) {
      const auto* from = reinterpret_cast<const char*>(part.sources.cells + word);
      auto* to = reinterpret_cast<char*>(cells + lane_index());
#pragma unroll
      for (unsigned byte = 0; byte < sizeof(CellMoments); byte += 8) copy_async<8>(to + byte, from + byte);
    }
    commit_copies();
  }

  // As convert_points().
  __device__ __forceinline__ bool convert_cells(unsigned n, unsigned padded, CellRecord* cells) {
    CellRecord& cell = cells[lane_index()];
    if (lane_index() < n) {
      const CellMoments c = cell.raw;
      const float scale = 1.0f / (part.k.unit * part.k.unit);
      cell.term[0] = relative(part.k, part.group, c.x, c.y, c.z, c.mass);
      cell.term[1] = make_float4(c.qxx * scale, c.qyy * scale, c.qzz * scale, c.qxy * scale);
      cell.term[2] = make_float4(c.qxz * scale, c.qyz * scale, (c.qxx + c.qyy + c.qzz) * (0.5f * scale), 0.0f);
      return Law::kSpline && is_within(shared.reach, cell.term[0]);
    }
    if (lane_index() < padded) {
      cell.term[0] = make_float4(kNowhere, 0.0f, 0.0f, 0.0f);
      cell.term[1] = cell.term[2] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    return false;
  }

  __device__ __forceinline__ static std::uint32_t word_of_lane(const std::uint32_t* words, unsigned n, unsigned begin) {
    return begin + lane_index() < n ? words[begin + lane_index()] : 0;
  }

  // Words are read one tile ahead of their cells.
  __device__ __forceinline__ void add_quadrupoles(const std::uint32_t* words, unsigned n) {
    const unsigned most = most_cells;
    std::uint32_t word = word_of_lane(words, n, most);
    start_cells(word_of_lane(words, n, 0), min(n, most), tile(tiles).cells);
    for (unsigned pos = 0; pos < n; pos += most) {
      const unsigned size = min(n - pos, most), padded = padded_to(size, part.subsets, most);
      CellRecord* cells = tile(tiles).cells;
      wait_copies<0>();
      const bool near = convert_cells(size, padded, cells);
      __syncwarp();
      if (pos + most < n) {
        start_cells(word, min(n - pos - most, most), tile(tiles + 1).cells);
        word = word_of_lane(words, n, pos + 2 * most);
      }
      if (Law::kSpline && __any_sync(kAllLanes, near))
        add_cells<Law>(part.k, cells, padded, part.subset, part.subsets, targets);
      else
        add_cells<Beyond>(part.k, cells, padded, part.subset, part.subsets, targets);
      finish_tile();
    }
  }
};

inline constexpr unsigned kWarps = 4;
inline constexpr unsigned kBlock = kWarps * kWarpSize;
// Blocks that a multiprocessor holds: 20 warps of 96 registers, 16 of 128 for longer formulas, 12 of 168 for the
// longest. On sm_80 the compiler needs more registers and would spill. Multiprocessors with 100 KB of shared memory
// hold four blocks at most.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr bool kMoreRegisters = true;
#else
inline constexpr bool kMoreRegisters = false;
#endif
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
inline constexpr unsigned kMostBlocks = 4;
#else
inline constexpr unsigned kMostBlocks = 5;
#endif
template <class Law>
constexpr unsigned blocks_of() {
  constexpr bool split = Law::kSplit != Split::kNone, s2 = Law::kSplit == Split::kS2;
  if (Law::kSpline && Law::kPotential && (Law::kOrder > 6 || (kMoreRegisters && split))) return 3;
  const bool refined = kMoreRegisters && Law::kRefine && (s2 || !split);
  return Law::kSpline || (split && Law::kPotential) || refined ? 4 : kMostBlocks;
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

}  // namespace maki::cuda
