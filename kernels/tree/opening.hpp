// When a cell serves a group as a multipole, and when it is out of reach (docs/design.md, "Force split"): the one
// place where this is decided, with the same roundings on every instruction set and backend, so that all make the
// same lists.
//
// Lengths are floats in units of the last bit of a coordinate, 2^-32 sides: scaling by a power of two is exact. The
// other products are never fused with a sum; units that could fuse them are compiled with -ffp-contract=off. V is
// float, or one of the compiler's vectors of floats.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/tree/types.hpp"

namespace maki {

inline constexpr float kSideInUnits = 4294967296.0f;

struct OpeningRule {
  float of_size;        // opening distance over a cell's size, at least; in units to a side
  float reach_squared;  // of the cutoff, in units; above every distance without one
  float
      of_error_length;  // opening distance over error length, for an error scale of 1; in units to a side; 0: not read
};

// The error length of a cell of mass m and size s is (m s^3)^(1/5). The octupole that its quadrupole leaves out makes an
// error of about m (s/2)^3 / d^5 at distance d, which is the fraction f of an acceleration a at
// d = (8 f a)^(-1/5) (m s^3)^(1/5). A group's error scale is (a_rms / a)^(1/5), for the least acceleration a of its
// members and the rms of all; between these limits, so that neither a point without force nor the inside of a binary
// decides alone (the relative criterion of GADGET-4, Springel et al. 2021, section 2.2; Dehnen 2014).
inline constexpr float kLeastErrorScale = 0.4f, kMostErrorScale = 2.5f;

// The fraction f of the rms acceleration that one cell may be wrong by, by the opening angle: f = theta^5 / this. Chosen
// so that forces are as good as with cells opened by the same angle (bench/NOTES.md, "Opening by estimated error").
inline constexpr float kErrorFactor = 128;

// Times theta: cells opened by this angle make forces as good as those opened by estimated error with theta
// (docs/accuracy.md, "Isolated sets").
inline constexpr double kAngleAsGood = 0.85;

// A cell serves as a multipole no nearer than this times its size (and the offset), by estimated error: no group then
// meets a cell that holds some of it, as half the diagonal of a cube is less.
inline constexpr float kLeastDistance = 0.87f;

// The bounding box of a walk's group: centre (fixed point) and half extents (units). Regions whose groups are not known
// have the largest error scale.
struct WalkTarget {
  std::uint32_t x, y, z;
  float hx, hy, hz;
  float error_scale = kMostErrorScale;
};

MAKI_HD_ALWAYS WalkTarget walk_target(const Group& group) {
  return {group.x,          group.y, group.z, group.hx * kSideInUnits, group.hy * kSideInUnits, group.hz * kSideInUnits,
          group.error_scale};
}

// |a - b| on one axis, to the nearest image.
MAKI_HD float axis_distance(std::uint32_t a, std::uint32_t b) {
  return std::fabs(static_cast<float>(signed_difference(a, b)));
}

template <class V, class S>
MAKI_HD_ALWAYS V rounded_product(V a, S b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

template <class V>
MAKI_HD_ALWAYS V positive_part(V v) {
#if defined(__CUDA_ARCH__)
  return fmaxf(v, 0.0f);
#else
  return v > 0.0f ? v : V{};
#endif
}

template <class V>
MAKI_HD_ALWAYS V sum_of_squares(V x, V y, V z) {
  return rounded_product(x, x) + rounded_product(y, y) + rounded_product(z, z);
}

// Squared distance from the group's box to a point that is dx, dy, dz (absolute values) away from its centre.
template <class V>
MAKI_HD_ALWAYS V point_gap_squared(const WalkTarget& t, V dx, V dy, V dz) {
  return sum_of_squares(positive_part(dx - t.hx), positive_part(dy - t.hy), positive_part(dz - t.hz));
}

// A box about such a point: its half extents are in sides.
template <class V>
struct BoxAway {
  V dx, dy, dz, hx, hy, hz;
};

template <class V>
MAKI_HD_ALWAYS V box_gap_squared(const WalkTarget& t, const BoxAway<V>& b) {
  return sum_of_squares(positive_part(b.dx - t.hx - b.hx * kSideInUnits),
                        positive_part(b.dy - t.hy - b.hy * kSideInUnits),
                        positive_part(b.dz - t.hz - b.hz * kSideInUnits));
}

// Whether a cell's box is within the cutoff.
template <class V>
MAKI_HD_ALWAYS auto within_reach(const OpeningRule& rule, V box_gap) {
  return box_gap < rule.reach_squared;
}

template <class V>
MAKI_HD_ALWAYS V larger(V a, V b) {
#if defined(__CUDA_ARCH__)
  return fmaxf(a, b);
#else
  return a > b ? a : b;
#endif
}

// What opening a cell depends on, in sides; error_length: 0 where cells are opened by angle.
template <class V>
struct CellSize {
  V size, error_length, offset;
};

// The distance from the group's box to the centre of mass at which a cell begins to serve as a multipole: by angle
// size / theta + offset (Barnes 1990 with the offset of Salmon & Warren); by estimated error the error length takes the
// place of the size.
template <class V>
MAKI_HD_ALWAYS V opening_distance(const OpeningRule& rule, const WalkTarget& t, const CellSize<V>& cell) {
  const V by_error = rounded_product(rounded_product(cell.error_length, t.error_scale), rule.of_error_length);
  return larger(rounded_product(cell.size, rule.of_size), by_error) + cell.offset * kSideInUnits;
}

template <class V>
MAKI_HD_ALWAYS auto far_enough(V point_gap, V opening) {
  return point_gap > rounded_product(opening, opening);
}

}  // namespace maki
