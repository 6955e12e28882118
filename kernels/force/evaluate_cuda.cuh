// List evaluation on the GPU: one block for a group. The targets lie across the lanes of a warp, several to a lane, and
// every warp takes its share of a tile of sources in shared memory, so that one load from there serves all targets
// of a lane. Warps add up their sums at the end.
#pragma once

#include "kernels/device/launch.cuh"
#include "kernels/force/force.hpp"
#include "kernels/force/pair_scalar.hpp"

namespace maki::evaluate {

using Real = Scalar<float>;

inline constexpr int kBlock = 128;
inline constexpr int kWarps = kBlock / 32;
inline constexpr int kSourceTile = 512;
inline constexpr int kCellTile = 128;
inline constexpr int kMostPerLane = 4;

// x, y, z in units from the group's centre, and mass; cells have two records more: xx yy zz xy | xz yz trace 0.
struct Tiles {
  union {
    float4 sources[kSourceTile];
    float4 cells[3 * kCellTile];
    float4 sums[kWarps][32 * kMostPerLane];  // ax ay az p of each warp, at the end
  };
  std::uint32_t leaf_first[kBlock];
  std::uint32_t leaf_offset[kBlock + 1];  // where a leaf's particles begin among those of the batch
  std::uint32_t warp_total[kWarps];
};

template <int kPerLane>
struct LaneTargets {
  Real x[kPerLane], y[kPerLane], z[kPerLane];
  Real ax[kPerLane], ay[kPerLane], az[kPerLane], p[kPerLane];

  __device__ void clear() {
    for (int j = 0; j < kPerLane; ++j) ax[j] = ay[j] = az[j] = p[j] = Real(0.0f);
  }
  // A tile's sum is small beside the total of a long list: added up apart, it keeps its digits.
  __device__ void add(const LaneTargets& tile) {
    for (int j = 0; j < kPerLane; ++j) {
      ax[j] = ax[j] + tile.ax[j];
      ay[j] = ay[j] + tile.ay[j];
      az[j] = az[j] + tile.az[j];
      p[j] = p[j] + tile.p[j];
    }
  }
};

__device__ inline float4 relative(const PairParameters& k, const Group& group, std::uint32_t x, std::uint32_t y,
                                  std::uint32_t z, float mass) {
  return make_float4(static_cast<float>(signed_difference(x, group.x)) * k.bits_to_unit,
                     static_cast<float>(signed_difference(y, group.y)) * k.bits_to_unit,
                     static_cast<float>(signed_difference(z, group.z)) * k.bits_to_unit, mass);
}

template <class Law, int kPerLane>
__device__ void add_sources(const PairParameters& k, const float4* sources, int n, LaneTargets<kPerLane>& total) {
  LaneTargets<kPerLane> t = total;
  t.clear();
  for (int i = threadIdx.x / 32; i < n; i += kWarps) {
    const float4 s = sources[i];
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      const Real x = Real(s.x) - t.x[j], y = Real(s.y) - t.y[j], z = Real(s.z) - t.z[j];
      Real mass_g, mass_p;
      monopole<Law>(k, softened_square<Law>(k, x, y, z), Real(s.w), mass_g, mass_p);
      t.ax[j] = t.ax[j] + mass_g * x;
      t.ay[j] = t.ay[j] + mass_g * y;
      t.az[j] = t.az[j] + mass_g * z;
      if constexpr (Law::kPotential) {
        const bool apart = less(Real(0.0f), x * x + (y * y + z * z));
        t.p[j] = t.p[j] + where(apart, mass_p, Real(s.w) * own_potential<Law, Real>(k));
      }
    }
  }
  total.add(t);
}

template <class Law, int kPerLane>
__device__ void add_cells(const PairParameters& k, const float4* cells, int n, LaneTargets<kPerLane>& total) {
  LaneTargets<kPerLane> t = total;
  t.clear();
  for (int i = threadIdx.x / 32; i < n; i += kWarps) {
    const float4 a = cells[3 * i], b = cells[3 * i + 1], c = cells[3 * i + 2];
    const CellTerms<Real> q{Real(a.w), Real(b.x), Real(b.y), Real(b.z), Real(b.w), Real(c.x), Real(c.y), Real(c.z)};
#pragma unroll
    for (int j = 0; j < kPerLane; ++j)
      add_cell<Law>(k, Real(a.x) - t.x[j], Real(a.y) - t.y[j], Real(a.z) - t.z[j], q, t.ax[j], t.ay[j], t.az[j],
                    t.p[j]);
  }
  total.add(t);
}

// Exclusive prefix sums of one number of each thread, in leaf_offset. All threads of the block.
__device__ inline void scan_counts(Tiles& tiles, std::uint32_t count) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::uint32_t sum = count;
  for (int step = 1; step < 32; step *= 2) {
    const std::uint32_t below = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += below;
  }
  if (lane == 31) tiles.warp_total[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; ++w) sum += tiles.warp_total[w];
  tiles.leaf_offset[threadIdx.x + 1] = sum;
  if (threadIdx.x == 0) tiles.leaf_offset[0] = 0;
  __syncthreads();
}

// Which leaf of the batch holds particle `i`: the last one that begins at or before it and is not empty.
__device__ inline int leaf_of(const Tiles& tiles, std::uint32_t i) {
  int low = 0, high = kBlock;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (tiles.leaf_offset[middle] <= i)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Leaves are taken kBlock at a time and their particles strung together, so that tiles are full.
template <class Law, int kPerLane>
__device__ void add_leaves(const PairParameters& k, const SourceView& sources, const Group& group,
                           const std::uint32_t* words, std::uint32_t n, Tiles& tiles, LaneTargets<kPerLane>& t) {
  for (std::uint32_t batch = 0; batch < n; batch += kBlock) {
    const bool there = batch + threadIdx.x < n;
    const std::uint32_t leaf = there ? words[batch + threadIdx.x] : 0;
    tiles.leaf_first[threadIdx.x] = there ? sources.cell_first[leaf] : 0;
    scan_counts(tiles, there ? sources.cell_count[leaf] : 0);
    const std::uint32_t total = tiles.leaf_offset[kBlock];
    for (std::uint32_t begin = 0; begin < total; begin += kSourceTile) {
      const std::uint32_t size = min(total - begin, static_cast<std::uint32_t>(kSourceTile));
      for (std::uint32_t i = threadIdx.x; i < size; i += kBlock) {
        const int l = leaf_of(tiles, begin + i);
        const SourceParticle s = sources.particles[tiles.leaf_first[l] + (begin + i - tiles.leaf_offset[l])];
        tiles.sources[i] = relative(k, group, s.x, s.y, s.z, s.mass);
      }
      __syncthreads();
      add_sources<Law>(k, tiles.sources, static_cast<int>(size), t);
      __syncthreads();
    }
  }
}

template <class Law, int kPerLane>
__device__ void add_moments(const PairParameters& k, bool quadrupoles, const SourceView& sources, const Group& group,
                            const std::uint32_t* words, std::uint32_t n, Tiles& tiles, LaneTargets<kPerLane>& t) {
  const float scale = 1.0f / (k.unit * k.unit);
  for (std::uint32_t batch = 0; batch < n; batch += kCellTile) {
    const int size = static_cast<int>(min(n - batch, static_cast<std::uint32_t>(kCellTile)));
    for (int i = threadIdx.x; i < size; i += kBlock) {
      const CellMoments& c = sources.cells[words[batch + i]];
      const float4 point = relative(k, group, c.x, c.y, c.z, c.mass);
      if (!quadrupoles) {
        tiles.sources[i] = point;
        continue;
      }
      tiles.cells[3 * i] = point;
      tiles.cells[3 * i + 1] = make_float4(c.qxx * scale, c.qyy * scale, c.qzz * scale, c.qxy * scale);
      tiles.cells[3 * i + 2] = make_float4(c.qxz * scale, c.qyz * scale, (c.qxx + c.qyy + c.qzz) * scale, 0.0f);
    }
    __syncthreads();
    if (quadrupoles)
      add_cells<Law>(k, tiles.cells, size, t);
    else
      add_sources<Law>(k, tiles.sources, size, t);
    __syncthreads();
  }
}

// Adds the warps' sums and writes them out.
template <class Law, int kPerLane>
__device__ void store(const PairParameters& k, const ForceOutput& out, std::uint32_t first, std::uint32_t count,
                      Tiles& tiles, const LaneTargets<kPerLane>& t) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int j = 0; j < kPerLane; ++j)
    tiles.sums[warp][32 * j + lane] = make_float4(t.ax[j].v, t.ay[j].v, t.az[j].v, t.p[j].v);
  __syncthreads();
  const float scale = 1.0f / k.unit;
  for (std::uint32_t i = threadIdx.x; i < count; i += kBlock) {
    float4 sum = tiles.sums[0][i];
    for (int w = 1; w < kWarps; ++w) {
      const float4 s = tiles.sums[w][i];
      sum = make_float4(sum.x + s.x, sum.y + s.y, sum.z + s.z, sum.w + s.w);
    }
    out.acceleration.x[first + i] = sum.x * scale * scale;
    out.acceleration.y[first + i] = sum.y * scale * scale;
    out.acceleration.z[first + i] = sum.z * scale * scale;
    if constexpr (Law::kPotential) out.potential[first + i] = -sum.w * scale;
  }
  __syncthreads();
}

// Targets [first, first + count), at most 32 kPerLane.
template <class Law, int kPerLane>
__device__ void evaluate_targets(const PairParameters& k, bool quadrupoles, const SourceView& sources,
                                 const ListView& lists, const ForceOutput& out, std::uint32_t index,
                                 std::uint32_t first, std::uint32_t count, Tiles& tiles) {
  const Group group = lists.groups[index];
  const ListRange range = lists.ranges[index];
  LaneTargets<kPerLane> t;
  for (int j = 0; j < kPerLane; ++j) {
    const std::uint32_t i = min(32 * j + threadIdx.x % 32, count - 1);  // surplus lanes repeat the last target
    const SourceParticle s = sources.particles[first + i];
    const float4 r = relative(k, group, s.x, s.y, s.z, s.mass);
    t.x[j] = Real(r.x), t.y[j] = Real(r.y), t.z[j] = Real(r.z);
  }
  t.clear();
  const std::uint32_t* words = lists.words + range.begin;
  add_moments<Law>(k, quadrupoles, sources, group, words, range.cells, tiles, t);
  add_leaves<Law>(k, sources, group, words + range.cells, range.leaves, tiles, t);
  store<Law>(k, out, first, count, tiles, t);
}

template <class Law>
__global__ void __launch_bounds__(kBlock)
    evaluate_kernel(PairParameters k, bool quadrupoles, SourceView sources, ListView lists, ForceOutput out) {
  __shared__ Tiles tiles;
  const std::uint32_t index = lists.selected ? lists.selected[blockIdx.x] : blockIdx.x;
  const std::uint32_t first = lists.groups[index].first, count = lists.groups[index].count;
  constexpr std::uint32_t kMost = 32 * kMostPerLane;
  for (std::uint32_t done = 0; done < count; done += kMost) {
    const std::uint32_t part = min(count - done, kMost);
    if (part <= 32)
      evaluate_targets<Law, 1>(k, quadrupoles, sources, lists, out, index, first + done, part, tiles);
    else if (part <= 64)
      evaluate_targets<Law, 2>(k, quadrupoles, sources, lists, out, index, first + done, part, tiles);
    else
      evaluate_targets<Law, kMostPerLane>(k, quadrupoles, sources, lists, out, index, first + done, part, tiles);
  }
}

// Direct sum. One thread for kDirectPerThread targets; separations are exact differences of the fixed-point
// coordinates, so that a pair's two forces are equal and opposite.
inline constexpr int kDirectPerThread = 2;
inline constexpr int kDirectTile = 256;

template <class Law>
__global__ void __launch_bounds__(kBlock)
    direct_kernel(PairParameters k, const SourceParticle* particles, std::uint32_t n, std::uint32_t first,
                  std::uint32_t count, ForceOutput out) {
  __shared__ SourceParticle tile[kDirectTile];
  const std::uint32_t begin = blockIdx.x * kBlock * kDirectPerThread + threadIdx.x;
  SourceParticle target[kDirectPerThread];
  LaneTargets<kDirectPerThread> total;
  total.clear();
  for (int j = 0; j < kDirectPerThread; ++j) target[j] = particles[first + min(begin + j * kBlock, count - 1)];
  const Real to_unit(k.bits_to_unit);
  for (std::uint32_t base = 0; base < n; base += kDirectTile) {
    const std::uint32_t size = min(n - base, static_cast<std::uint32_t>(kDirectTile));
    for (std::uint32_t i = threadIdx.x; i < size; i += kBlock) tile[i] = particles[base + i];
    __syncthreads();
    LaneTargets<kDirectPerThread> t;
    t.clear();
    for (std::uint32_t i = 0; i < size; ++i) {
      const SourceParticle s = tile[i];
#pragma unroll
      for (int j = 0; j < kDirectPerThread; ++j) {
        const Real x = Real(static_cast<float>(signed_difference(s.x, target[j].x))) * to_unit;
        const Real y = Real(static_cast<float>(signed_difference(s.y, target[j].y))) * to_unit;
        const Real z = Real(static_cast<float>(signed_difference(s.z, target[j].z))) * to_unit;
        Real mass_g, mass_p;
        monopole<Law>(k, softened_square<Law>(k, x, y, z), Real(s.mass), mass_g, mass_p);
        t.ax[j] = t.ax[j] + mass_g * x;
        t.ay[j] = t.ay[j] + mass_g * y;
        t.az[j] = t.az[j] + mass_g * z;
        if constexpr (Law::kPotential) {
          const bool apart = less(Real(0.0f), x * x + (y * y + z * z));
          t.p[j] = t.p[j] + where(apart, mass_p, Real(s.mass) * own_potential<Law, Real>(k));
        }
      }
    }
    total.add(t);
    __syncthreads();
  }
  const float scale = 1.0f / k.unit;
  for (int j = 0; j < kDirectPerThread; ++j) {
    const std::uint32_t i = begin + j * kBlock;
    if (i >= count) break;
    out.acceleration.x[i] = total.ax[j].v * scale * scale;
    out.acceleration.y[i] = total.ay[j].v * scale * scale;
    out.acceleration.z[i] = total.az[j].v * scale * scale;
    if constexpr (Law::kPotential) out.potential[i] = -total.p[j].v * scale;
  }
}

}  // namespace maki::evaluate
