// The cloud shapes of mass assignment: B-splines over 2 (CIC), 3 (TSC) or 4 (PCS) cells an axis (Hockney & Eastwood
// 1988, section 5-3; PCS: Sefusatti et al. 2016).
//
// Included by translation units of several instruction sets: everything here has internal linkage.
#pragma once

#include <cstdint>

#include "kernels/device/macros.hpp"

namespace maki {

// A particle at fixed-point coordinate p is at u = p m / 2^32 mesh cells, mesh point i at u = i. Its cloud, shifted by
// `half_cells` (1 for the interlaced mesh), covers the cells first, ..., first + S - 1.
struct MeshPosition {
  std::int32_t first;      // may be -1, and up to m + 1: not yet wrapped
  std::uint32_t fraction;  // position of the cloud's middle in its cell, 2^-32 cells
};

template <int S>
static MAKI_HD MeshPosition mesh_position(std::uint32_t p, std::uint32_t m, std::uint32_t half_cells) {
  const std::uint64_t shift = static_cast<std::uint64_t>(half_cells + (S & 1)) << 31;
  const std::uint64_t u = static_cast<std::uint64_t>(p) * m + shift;
  return {static_cast<std::int32_t>(u >> 32) - (S > 2 ? 1 : 0), static_cast<std::uint32_t>(u)};
}

// The cell to which split_units() leaves the rest.
template <int S>
inline constexpr int kRestCell = S == 4   ? 2
                                 : S == 3 ? 1
                                          : 0;

// Integer weights of one axis, with the exact sum 2^bits (bits <= 15), each within one unit of the true weight; that of
// the nearest cell, the sum less the others, within two. The position is rounded to 2^-15 cells. With TSC and PCS
// mirrored positions have mirrored weights: otherwise rounding would move the particles of a slightly displaced lattice
// further to their side.
template <int S>
static MAKI_HD void integer_weights(std::uint32_t fraction, int bits, std::uint32_t* w) {
  using Wide = std::uint64_t;
  const std::uint32_t t = (fraction >> 17) + (fraction >> 16 & 1u);  // 0 ... 2^15
  const std::uint32_t s = 32768u - t;
  const std::uint32_t sum = 1u << bits;
  if constexpr (S == 2) {
    w[1] = (2 * t + (1u << (15 - bits))) >> (16 - bits);
    w[0] = sum - w[1];
  } else if constexpr (S == 3) {
    const std::uint32_t half = 1u << (30 - bits);
    w[0] = (s * s + half) >> (31 - bits);
    w[2] = (t * t + half) >> (31 - bits);
    w[1] = sum - w[0] - w[2];
  } else {
    const std::uint32_t sixth = 715827883u;                                                 // 2^32 / 6
    const Wide s3 = static_cast<Wide>(s * s) * s, t3 = static_cast<Wide>(t * t) * t;        // in 2^-45
    const Wide s3_sixth = static_cast<Wide>(static_cast<std::uint32_t>(s3 >> 14)) * sixth;  // in 2^-63
    const Wide t3_sixth = static_cast<Wide>(static_cast<std::uint32_t>(t3 >> 14)) * sixth;
    w[0] = static_cast<std::uint32_t>((s3_sixth + (Wide{1} << (62 - bits))) >> (63 - bits));
    w[3] = static_cast<std::uint32_t>((t3_sixth + (Wide{1} << (62 - bits))) >> (63 - bits));
    const bool nearer = t < s;  // to cell 1 than to cell 2
    const std::uint32_t d = nearer ? s : t;
    const Wide d3 = nearer ? s3 : t3;
    const Wide second = (Wide{1} << 46) / 3 - (static_cast<Wide>(d * d) << 15) + (d3 >> 1);  // 2/3 - d^2 + d^3/2
    const auto farther = static_cast<std::uint32_t>((second + (Wide{1} << (44 - bits))) >> (45 - bits));
    const std::uint32_t rest = sum - w[0] - w[3] - farther;
    w[1] = nearer ? rest : farther;
    w[2] = nearer ? farther : rest;
  }
}

// The units of one particle (MassUnit).
static MAKI_HD std::uint32_t units_of(float mass, std::uint32_t equal_units, double units_per_mass) {
  return equal_units ? equal_units : static_cast<std::uint32_t>(static_cast<std::int32_t>(mass * units_per_mass + 0.5));
}

// The share of `units` in each of the S cells of one axis: floor(units w / 2^bits), and the rest in kRestCell, so that
// shares add up exactly.
template <int S>
static MAKI_HD void split_units(std::uint32_t units, int bits, const std::uint32_t* w, std::uint32_t* share) {
  std::uint32_t rest = units;
  for (int i = 0; i < S; ++i) {
    if (i == kRestCell<S>) continue;
    share[i] = static_cast<std::uint32_t>((static_cast<std::uint64_t>(units) * w[i]) >> bits);
    rest -= share[i];
  }
  share[kRestCell<S>] = rest;
}

// The cloud's weights in float, for interpolation.
template <int S>
static MAKI_HD void float_weights(std::uint32_t fraction, float* w) {
  const float t = static_cast<float>(static_cast<std::int32_t>(fraction >> 8)) * 5.9604645e-8f;  // 2^-24
  const float s = 1.0f - t;
  if constexpr (S == 2) {
    w[0] = s;
    w[1] = t;
  } else if constexpr (S == 3) {
    w[0] = 0.5f * s * s;
    w[2] = 0.5f * t * t;
    w[1] = 0.5f + s * t;
  } else {
    w[0] = s * s * s * (1.0f / 6.0f);
    w[1] = 2.0f / 3.0f - t * t * (1.0f - 0.5f * t);
    w[2] = 2.0f / 3.0f - s * s * (1.0f - 0.5f * s);
    w[3] = t * t * t * (1.0f / 6.0f);
  }
}

// The derivatives of the weights, per cell.
template <int S>
static MAKI_HD void float_slopes(std::uint32_t fraction, float* d) {
  const float t = static_cast<float>(static_cast<std::int32_t>(fraction >> 8)) * 5.9604645e-8f;
  const float s = 1.0f - t;
  if constexpr (S == 2) {
    d[0] = -1.0f;
    d[1] = 1.0f;
  } else if constexpr (S == 3) {
    d[0] = -s;
    d[1] = s - t;
    d[2] = t;
  } else {
    d[0] = -0.5f * s * s;
    d[1] = t * (1.5f * t - 2.0f);
    d[2] = s * (2.0f - 1.5f * s);
    d[3] = 0.5f * t * t;
  }
}

}  // namespace maki
