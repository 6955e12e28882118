// The opening criterion: when a cell serves a group as a multipole, and when it is out of reach (docs/design.md, "Force
// split"). Decided only here, with the same roundings on every instruction set and backend, so that all make the same
// lists.
//
// Lengths are floats in units of the last bit of a coordinate, 2^-32 sides: scaling by a power of two is exact. Other
// products are never fused with a sum; units that could fuse them are compiled with -ffp-contract=off. V is float, or a
// vector of floats of the compiler.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/tree/types.hpp"

namespace maki {

inline constexpr float kSideInUnits = 4294967296.0f;

// "Units" are of the last bit; cells' sizes and error lengths are in sides.
struct OpeningRule {
  float of_size;          // opening distance (units) for a cell of size 1: 1 / theta, or a lower bound where by error
  float reach_squared;    // square of the cutoff (units^2); without a cutoff above every distance
  float of_error_length;  // opening distance (units) for error length 1 and error scale 1; 0: cells open by angle
};

// The error length of a cell of mass m and size s is (m s^3)^(1/5). The quadrupole leaves out the octupole, an error of
// about m (s/2)^3 / d^5 at distance d. This is the fraction f of an acceleration a at d = (8 f a)^(-1/5) (m s^3)^(1/5).
// A group's error scale is (a_ref / a)^(1/5), where a is the least acceleration of its members and a_ref one
// acceleration for all groups, reference_acceleration(). These limits keep a point without force, or the inside of a
// binary, from deciding alone (the relative criterion of GADGET-4, Springel et al. 2021, section 2.2; Dehnen 2014).
inline constexpr float kLeastErrorScale = 0.4f, kMostErrorScale = 2.5f;

// The reference for a set's error scales: the rms acceleration, but at most kMostOverTypical times the geometric mean,
// as one tight pair may have nearly all of the rms; groups with 1/98 of it or less would all have the largest scale.
inline constexpr double kMostOverTypical = 4;
inline double reference_acceleration(double rms, double typical) { return std::min(rms, kMostOverTypical * typical); }

// The fraction f of the reference acceleration that is allowed as one cell's error: f = theta^5 / this. Chosen so that
// forces are as good as with cells opened by the same angle (bench/NOTES.md, "Opening by estimated error").
inline constexpr float kErrorFactor = 128;

// Factor on theta: cells opened by this angle make forces as good as those opened by estimated error with theta
// (docs/accuracy.md, "Isolated sets").
inline constexpr double kAngleAsGood = 0.85;

// Lower bound on the opening distance, less the offset, over the cell's size. It exceeds half the diagonal of a cube,
// so that no group accepts a cell that holds some of it, whatever theta is.
inline constexpr float kLeastDistance = 0.87f;

// The bounding box of a walk's group: centre (fixed point) and half extents (units). Regions whose groups are unknown
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

// Squared distance from the group's box to a point dx, dy, dz (absolute values) away from its centre.
template <class V>
MAKI_HD_ALWAYS V point_gap_squared(const WalkTarget& t, V dx, V dy, V dz) {
  return sum_of_squares(positive_part(dx - t.hx), positive_part(dy - t.hy), positive_part(dz - t.hz));
}

// A box around such a point; its half extents are in sides.
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

// The opening criterion's data of a cell, in sides; error_length: 0 where cells are opened by angle.
template <class V>
struct CellSize {
  V size, error_length, offset;
};

// The least distance from the group's box to the centre of mass at which a cell serves as a multipole: by angle, size /
// theta + offset (Barnes 1990 with the offset of Salmon & Warren); by estimated error, the error length replaces the
// size.
template <class V>
MAKI_HD_ALWAYS V opening_distance(const OpeningRule& rule, const WalkTarget& t, const CellSize<V>& cell) {
  const V by_error = rounded_product(rounded_product(cell.error_length, t.error_scale), rule.of_error_length);
  return larger(rounded_product(cell.size, rule.of_size), by_error) + cell.offset * kSideInUnits;
}

template <class V>
MAKI_HD_ALWAYS auto far_enough(V point_gap, V opening) {
  return point_gap > rounded_product(opening, opening);
}

// The cell data of a walk, array by array, so that siblings load as one vector. Lengths in sides. The arrays are padded
// by 8 elements, so that 8 siblings can be loaded from any index.
struct CellGeometryView {
  std::uint32_t *comx, *comy, *comz;  // centre of mass, fixed point
  std::uint32_t *x, *y, *z;           // centre of the bounding box, fixed point
  float *hx, *hy, *hz;                // half extents of the bounding box
  float* size;                        // longest side of the bounding box
  float* offset;                      // distance from the box's centre to the centre of mass
  float* error_length;                // (opening.hpp); null where cells are opened by angle

  MAKI_HD CellSize<float> size_of(std::size_t cell) const {
    return {size[cell], error_length ? error_length[cell] : 0.0f, offset[cell]};
  }
  // Squared distance from the group's box to the cell's centre of mass.
  MAKI_HD float centre_gap_squared(const WalkTarget& t, std::uint32_t c) const {
    return point_gap_squared(t, axis_distance(comx[c], t.x), axis_distance(comy[c], t.y), axis_distance(comz[c], t.z));
  }
  // Squared distance from the group's box to the cell's box.
  MAKI_HD float box_gap_squared(const WalkTarget& t, std::uint32_t c) const {
    return maki::box_gap_squared(t, BoxAway<float>{axis_distance(x[c], t.x), axis_distance(y[c], t.y),
                                                   axis_distance(z[c], t.z), hx[c], hy[c], hz[c]});
  }
};

}  // namespace maki
