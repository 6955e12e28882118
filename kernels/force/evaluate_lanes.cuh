// The layout of a group's targets over the lanes of a warp, and the loops over sources in shared memory.
#pragma once

#include "kernels/device/launch.cuh"
#include "kernels/force/force.hpp"
#include "kernels/force/pair_scalar.hpp"

namespace maki::cuda {

using Real = Scalar<float>;

// A lane holds 3, 4 or 5 targets: one load of a source serves them all.
inline constexpr unsigned kLeastPerLane = 3;
inline constexpr unsigned kMostPerLane = 5;
inline constexpr unsigned kMostTargets = kMostPerLane * kWarpSize;  // of one part of a group

// `lanes` lanes hold the targets. A warp has room for several such subsets of lanes, which take different sources: 45
// targets are 2 subsets of 15 lanes with 3 each, and 94 % of all lanes do useful work.
struct LaneShape {
  unsigned per_lane, lanes, subsets;
};

// The cheapest shape for 1 <= count <= kMostTargets. Cost in slots for each source: 14 1/2 a target and 1 for the load.
MAKI_HD LaneShape choose_shape(unsigned count) {
  LaneShape best{};
  unsigned best_cost = 0;
  for (unsigned per_lane = kMostPerLane; per_lane >= kLeastPerLane; --per_lane) {
    const unsigned lanes = (count + per_lane - 1) / per_lane;
    if (lanes > kWarpSize) break;
    const unsigned subsets = kWarpSize / lanes, cost = 29 * per_lane + 2;
    if (best_cost == 0 || cost * best.subsets < best_cost * subsets) {
      best = {per_lane, lanes, subsets};
      best_cost = cost;
    }
  }
  return best;
}

// Larger groups are evaluated in parts, each with the whole list.
MAKI_HD unsigned size_of_part(unsigned left) { return left <= kMostTargets ? left : 4 * kWarpSize; }

// The targets of a lane, in units from the group's centre, and the sums over its sources since the last flush.
template <int kPerLane>
struct LaneTargets {
  Real x[kPerLane], y[kPerLane], z[kPerLane];
  PairSums<Real> sum[kPerLane];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) sum[j] = {};
  }
  // The sum of a few tiles is small beside the total of a long list: summed apart, it loses no digits.
  template <bool kPotential>
  __device__ __forceinline__ void flush(float4* totals) {
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      float4& total = totals[j * kWarpSize + threadIdx.x % kWarpSize];
      const float4 before = total;
      const PairSums<Real>& s = sum[j];
      total =
          make_float4(before.x + s.ax.v, before.y + s.ay.v, before.z + s.az.v, kPotential ? before.w + s.p.v : 0.0f);
    }
    clear();
  }
};

// A particle or monopole on its way through shared memory: first as in global memory, then as x, y, z from the group's
// centre in units, and mass.
union PointRecord {
  SourceParticle raw;
  float4 point;
};
// A cell: x y z mass | xx yy zz xy | xz yz trace/2 0.
union alignas(16) CellRecord {
  CellMoments raw;
  float4 term[3];
};

// Sources that a subset takes in one turn of the loop, to amortise the loop counter. At most kUnroll of the law's
// Beyond.
template <class Law, bool kOwn>
inline constexpr unsigned kUnroll = kOwn || Law::kSpline || Law::kSplit == Split::kS2 ? 1 : 2;

// kOwn: the tile may hold the targets themselves. They add `own` times their mass to their potential, without 1/s.
template <class Law, bool kOwn, int kPerLane>
__device__ __forceinline__ void add_point(const PairParameters& k, const float4 s, Real own,
                                          LaneTargets<kPerLane>& at) {
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) {
    const Real x = Real(s.x) - at.x[j], y = Real(s.y) - at.y[j], z = Real(s.z) - at.z[j];
    Real mass_g, mass_p(0.0f);
    const Real t = monopole_before_cutoff<Law>(k, softened_square<Law>(k, x, y, z), Real(s.w), mass_g, mass_p);
    if constexpr (kOwn) mass_p = where(x.v != 0.0f || y.v != 0.0f || z.v != 0.0f, mass_p, Real(s.w) * own);
    if (!less(Real(0.0f), t)) continue;  // becomes a predicate on the additions: exactly zero beyond the cutoff
    // Explicitly fused or not: the compiler would otherwise fuse for some of a lane's targets only, and particles at
    // one position would get different forces by their places in the group.
    PairSums<Real>& sum = at.sum[j];
    sum.ax = Real(__fmaf_rn(mass_g.v, x.v, sum.ax.v));
    sum.ay = Real(__fmaf_rn(mass_g.v, y.v, sum.ay.v));
    sum.az = Real(__fmaf_rn(mass_g.v, z.v, sum.az.v));
    if constexpr (Law::kPotential) sum.p = Real(__fadd_rn(sum.p.v, mass_p.v));
  }
}

// `n` is a multiple of subsets * kUnroll: the tile is padded with points of zero mass.
template <class Law, bool kOwn, int kPerLane>
__device__ __forceinline__ void add_points(const PairParameters& k, const PointRecord* points, unsigned n,
                                           unsigned subset, unsigned subsets, LaneTargets<kPerLane>& t) {
  constexpr unsigned kTurn = kUnroll<Law, kOwn>;
  const PointRecord* s = points + kTurn * subset;
  const PointRecord* const end = s + n;
  const Real own = kOwn ? own_potential<Law, Real>(k) : Real(0.0f);
#pragma unroll 1
  for (; s != end; s += kTurn * subsets) {
#pragma unroll
    for (unsigned u = 0; u < kTurn; ++u) add_point<Law, kOwn>(k, s[u].point, own, t);
  }
}

template <class Law, int kPerLane>
__device__ __forceinline__ void add_cells(const PairParameters& k, const CellRecord* cells, unsigned n, unsigned subset,
                                          unsigned subsets, LaneTargets<kPerLane>& t) {
  const CellRecord* s = cells + subset;
  const CellRecord* const end = s + n;
#pragma unroll 1
  for (; s != end; s += subsets) {
    const float4 a = s->term[0], b = s->term[1], c = s->term[2];
    const CellTerms<Real> q{Real(a.w), Real(b.x), Real(b.y), Real(b.z), Real(b.w), Real(c.x), Real(c.y), Real(c.z)};
#pragma unroll
    for (int j = 0; j < kPerLane; ++j)
      add_cell<Law>(k, Real(a.x) - t.x[j], Real(a.y) - t.y[j], Real(a.z) - t.z[j], q, t.sum[j]);
  }
}

}  // namespace maki::cuda
