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
  float inverse_theta;  // in units to a side
  float reach_squared;  // of the cutoff, in units; above every distance without one
};

// The bounding box of a walk's group: centre (fixed point) and half extents (units).
struct WalkTarget {
  std::uint32_t x, y, z;
  float hx, hy, hz;
};

MAKI_HD_ALWAYS WalkTarget walk_target(const Group& group) {
  return {group.x, group.y, group.z, group.hx * kSideInUnits, group.hy * kSideInUnits, group.hz * kSideInUnits};
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

// The distance from the group's box to the centre of mass at which a cell begins to serve as a multipole:
// size / theta + offset, both in sides (Barnes 1990 with the offset of Salmon & Warren).
template <class V>
MAKI_HD_ALWAYS V opening_distance(const OpeningRule& rule, V size, V offset) {
  return rounded_product(size, rule.inverse_theta) + offset * kSideInUnits;
}

template <class V>
MAKI_HD_ALWAYS auto far_enough(V point_gap, V opening) {
  return point_gap > rounded_product(opening, opening);
}

}  // namespace maki
