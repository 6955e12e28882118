// List evaluation and direct sum on the GPU. A group is a block: the hardware starts a block wherever one has ended,
// which balances uneven lists.

#include "kernels/device/launch.cuh"
#include "kernels/force/evaluate_kernel.cuh"
#include "kernels/force/force.hpp"
#include "kernels/force/pair_scalar.hpp"

namespace maki::cuda {

// Direct sum on the GPU. Separations are exact differences of fixed-point coordinates, so that the two forces of a pair
// are equal and opposite.
inline constexpr unsigned kDirectBlock = 128;
inline constexpr unsigned kDirectPerThread = 2;
inline constexpr unsigned kDirectTargets = kDirectBlock * kDirectPerThread;  // of a block
inline constexpr unsigned kDirectTile = 256;

struct DirectSums {
  float ax = 0, ay = 0, az = 0, p = 0;

  // A tile's sum is small beside the total: summed apart, it loses no digits.
  __device__ __forceinline__ void add(const DirectSums& tile) {
    ax += tile.ax, ay += tile.ay, az += tile.az, p += tile.p;
  }
};

// Separations are in last bits (r^2 up to 2^64), the law's lengths in units.
template <class Law>
__device__ __forceinline__ void add_direct(const PairParameters& k, const SourceParticle& s, const SourceParticle& t,
                                           DirectSums& sum) {
  using Real = Scalar<float>;
  const Real x(static_cast<float>(signed_difference(s.x, t.x)));
  const Real y(static_cast<float>(signed_difference(s.y, t.y)));
  const Real z(static_cast<float>(signed_difference(s.z, t.z)));
  const Real r2 = x * x + (y * y + z * z);
  Real mass_g, mass_p;
  const Real unit_r2 = r2 * Real(k.bits_to_unit * k.bits_to_unit);
  const Real s2 = Law::kSpline ? larger(unit_r2, Real(k.softening2)) : unit_r2 + Real(k.softening2);
  monopole<Law>(k, s2, Real(s.mass), mass_g, mass_p);
  sum.ax += mass_g.v * x.v;
  sum.ay += mass_g.v * y.v;
  sum.az += mass_g.v * z.v;
  if constexpr (Law::kPotential)
    sum.p += where(less(Real(0.0f), r2), mass_p, Real(s.mass) * own_potential<Law, Real>(k)).v;
}

__device__ __forceinline__ void start_direct_tile(const SourceParticle* particles, std::uint32_t n, std::uint32_t base,
                                                  SourceParticle* tile) {
  for (unsigned i = threadIdx.x; i < kDirectTile; i += kDirectBlock)
    if (base + i < n) copy_async<16>(tile + i, particles + base + i);
  commit_copies();
}

// Two tile buffers in turn, one barrier a tile: after it one buffer is complete, and no thread reads the other, which
// the next copies overwrite.
template <class Law>
__global__ void __launch_bounds__(kDirectBlock) direct_kernel(PairParameters k, DirectSet set, ForceOutput out) {
  const auto& [particles, n, first, count] = set;
  __shared__ SourceParticle tiles[2][kDirectTile];
  const std::uint32_t begin = blockIdx.x * kDirectTargets + threadIdx.x;
  SourceParticle target[kDirectPerThread];
  DirectSums total[kDirectPerThread];
#pragma unroll
  for (unsigned j = 0; j < kDirectPerThread; ++j)
    target[j] = particles[first + min(begin + j * kDirectBlock, count - 1)];
  start_direct_tile(particles, n, 0, tiles[0]);
  for (std::uint32_t base = 0; base < n; base += kDirectTile) {
    const SourceParticle* tile = tiles[base / kDirectTile % 2];
    wait_copies<0>();
    __syncthreads();
    if (n - base > kDirectTile)
      start_direct_tile(particles, n, base + kDirectTile, tiles[(base / kDirectTile + 1) % 2]);
    const std::uint32_t size = min(n - base, kDirectTile);
    DirectSums sum[kDirectPerThread];
#pragma unroll 4
    for (std::uint32_t i = 0; i < size; ++i) {
      const SourceParticle s = tile[i];
#pragma unroll
      for (unsigned j = 0; j < kDirectPerThread; ++j) add_direct<Law>(k, s, target[j], sum[j]);
    }
#pragma unroll
    for (unsigned j = 0; j < kDirectPerThread; ++j) total[j].add(sum[j]);
    if (n - base <= kDirectTile) break;  // base + kDirectTile may be beyond 2^32
  }
  const float to_acceleration = k.bits_to_unit / (k.unit * k.unit);
#pragma unroll
  for (unsigned j = 0; j < kDirectPerThread; ++j) {
    const std::uint32_t i = begin + j * kDirectBlock;
    if (i >= count) break;
    out.acceleration.x[i] = total[j].ax * to_acceleration;
    out.acceleration.y[i] = total[j].ay * to_acceleration;
    out.acceleration.z[i] = total[j].az * to_acceleration;
    if constexpr (Law::kPotential) out.potential[i] = -total[j].p / k.unit;
  }
}

}  // namespace maki::cuda

namespace maki {

using namespace cuda;

void evaluate_lists(const Stream& stream, const ForceLaw& law, bool quadrupoles, const SourceView& sources,
                    const ListView& lists, const ForceOutput& out) {
  const PairParameters k = make_pair_parameters(law);
  with_law(k, out.potential != nullptr, [&](auto pair_law) {
    launch_blocks(stream, "evaluate_lists", {lists.count, kBlock, 0}, evaluate_kernel<decltype(pair_law)>, k,
                  quadrupoles, sources, lists, out);
  });
}

void direct_sum(const Stream& stream, const ForceLaw& law, const DirectSet& set, const ForceOutput& out) {
  const PairParameters k = make_pair_parameters(law);
  with_law(k, out.potential != nullptr, [&](auto pair_law) {
    launch_blocks(stream, "direct_sum", {(set.count + kDirectTargets - 1) / kDirectTargets, kDirectBlock, 0},
                  direct_kernel<decltype(pair_law)>, k, set, out);
  });
}

}  // namespace maki
