// A force law made ready for the inner loops: floats in a unit of length that suits the law.
#pragma once

#include "kernels/force/split.hpp"

namespace maki {

// Lengths are in units of `unit` sides, a power of two, so that scaling is exact: just below r_cut with a split,
// 2^-12 sides without one (the softening may be 2^-24 sides: neither 1/s^4 nor its inverse leaves float's range).
// With s the softened distance and t = cut - s^2 = r_cut^2 - r^2, pairs act where t > 0, and the polynomial split is
// g = 1/s^3 - sum force[j] t^j,  p = 1/s - sum potential[j] t^j.
// In powers of 1 - u the L(u) of the cloud (1 - u)^n is the Taylor polynomial of u^(-3/2) about 1: terms of one sign,
// and nearly so those of sums of clouds, so that floats lose next to nothing, unlike with powers of u.
// Plain arrays: the code for one instruction set must not instantiate templates of the standard library.
struct PairParameters {
  Split split;
  Softening softening;
  bool refine_root;
  int order;           // of the polynomials below: a multiple of what is compiled, zero-padded
  float unit;          // sides
  float bits_to_unit;  // last bits of the fixed-point coordinates to units: 2^-32 / unit
  float softening2;    // Plummer: eps^2; spline: the least s^2 that the formulas see, (h / 1024)^2
  float spline_h2;     // spline: h^2 and 1 / h
  float spline_inverse_h;
  float cut;             // s^2 at r_cut
  float two_over_r_cut;  // S2: xi = two_over_r_cut * s
  float force[kMaxSplitOrder + 1];
  float potential[kMaxSplitOrder + 2];
};

// Orders of the polynomial split that loops are compiled for; others use the next larger one.
inline constexpr int kCompiledOrders[] = {3, 4, 5, 6, 8};

PairParameters make_pair_parameters(const ForceLaw& law);

}  // namespace maki
