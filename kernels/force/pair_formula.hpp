// The pair formula: the force of a point mass, or of a cell with its quadrupole, on a target. Written once, for scalars
// (tests, CUDA) and for the vectors of every instruction set. docs/design.md, "Force split".
//
// T is a type with + - * and, found by argument-dependent lookup:
//   reciprocal_root(x, Root<r>)    1 / sqrt(x); with r = false 12 bits or more are enough
//   less(a, b)                     a mask
//   where(mask, a, b)              a, or b
//   zero_unless(mask, a)           a, or 0
//   any(mask)                      a bool
//   larger(a, b)
// It is built from a float with T(f). Lengths are in the unit of PairParameters, G = 1, and separations point from the
// target to the source. Only powers up to 1/s^4 are formed, so that extreme scales stay within float's range.
#pragma once

#include "kernels/device/macros.hpp"
#include "kernels/force/split.hpp"

namespace maki {

template <bool kRefine>
struct Root {};

MAKI_HD bool any(bool mask) { return mask; }
// Whether code may branch on a mask: on a bool, the mask of a scalar, where a GPU predicates the instructions that
// follow; not on the mask of a vector.
template <class Mask>
inline constexpr bool kIsBranch = false;
template <>
inline constexpr bool kIsBranch<bool> = true;

// The compile-time parameters of a loop. kBeyondIn: the sources lie beyond the spline's support of all targets.
template <Split kSplitIn, int kOrderIn, Softening kSofteningIn, bool kPotentialIn, bool kRefineIn,
          bool kBeyondIn = false>
struct PairLaw {
  static constexpr Split kSplit = kSplitIn;
  static constexpr int kOrder = kOrderIn;  // one of kCompiledOrders with the polynomial split, else 0
  static constexpr Softening kSoftening = kSofteningIn;
  static constexpr bool kPotential = kPotentialIn;
  static constexpr bool kRefine = kRefineIn;
  static constexpr bool kSpline = kSofteningIn == Softening::kSpline && !kBeyondIn;
  static constexpr bool kPoints = kBeyondIn;  // no softening
  using Beyond = PairLaw<kSplitIn, kOrderIn, kSofteningIn, kPotentialIn, kRefineIn, kSofteningIn == Softening::kSpline>;
};

// From a law chosen at run time to a compiled one: every split, order and softening, with and without the potential.
// Calls f with the PairLaw of k, its root exact.
template <Softening kSoftening, bool kPotential, class F>
auto with_split(const PairParameters& k, F f) {
  if (k.split == Split::kNone) return f(PairLaw<Split::kNone, 0, kSoftening, kPotential, true>{});
  if (k.split == Split::kS2) return f(PairLaw<Split::kS2, 0, kSoftening, kPotential, true>{});
  switch (k.order) {
    case 3: return f(PairLaw<Split::kPolynomial, 3, kSoftening, kPotential, true>{});
    case 4: return f(PairLaw<Split::kPolynomial, 4, kSoftening, kPotential, true>{});
    case 5: return f(PairLaw<Split::kPolynomial, 5, kSoftening, kPotential, true>{});
    case 6: return f(PairLaw<Split::kPolynomial, 6, kSoftening, kPotential, true>{});
    default: return f(PairLaw<Split::kPolynomial, 8, kSoftening, kPotential, true>{});
  }
}

template <class F>
auto with_law(const PairParameters& k, bool potential, F f) {
  if (k.softening == Softening::kSpline)
    return potential ? with_split<Softening::kSpline, true>(k, f) : with_split<Softening::kSpline, false>(k, f);
  return potential ? with_split<Softening::kPlummer, true>(k, f) : with_split<Softening::kPlummer, false>(k, f);
}

// s^2 from the separation: r^2 + eps^2 with Plummer softening; with the spline r^2, at least
// PairParameters::softening2.
template <class Law, class T>
MAKI_HD T softened_square(const PairParameters& k, T x, T y, T z) {
  if constexpr (Law::kSpline) return larger(x * x + (y * y + z * z), T(k.softening2));
  if constexpr (Law::kPoints) return x * x + (y * y + z * z);
  return x * x + (y * y + (z * z + T(k.softening2)));
}

// Newton's force and potential inside the support of GADGET's cubic spline (q = r / h < 1; Springel, Yoshida & White
// 2001), as factors of 1/s^3 and 1/s.
template <class T>
MAKI_HD T spline_force_share(T q) {
  const T q3 = q * q * q;
  const T inner = q3 * (T(10.6666667f) + q * q * (T(32.0f) * q - T(38.4f)));
  const T outer = q3 * (T(21.3333333f) + q * (T(-48.0f) + q * (T(38.4f) - T(10.6666667f) * q))) - T(0.0666666667f);
  return where(less(q, T(0.5f)), inner, outer);
}
template <class T>
MAKI_HD T spline_potential_share(T q) {
  const T q2 = q * q;
  const T inner = q * (T(2.8f) - q2 * (T(5.33333333f) + q2 * (T(6.4f) * q - T(9.6f))));
  const T tail = T(10.6666667f) + q * (T(-16.0f) + q * (T(9.6f) - T(2.13333333f) * q));
  return where(less(q, T(0.5f)), inner, q * (T(3.2f) - q2 * tail) - T(0.0666666667f));
}

// The mesh's share of Newton's force with S2 clouds, 1 - g(xi) (Ishiyama, Nitadori & Makino 2012, eq. 3), and of the
// potential, both for xi = 2 r / r_cut < 2.
template <class T>
MAKI_HD T s2_bump(T xi) {  // max(0, xi - 1)^6
  const T zeta = larger(xi - T(1.0f), T(0.0f));
  const T zeta3 = zeta * zeta * zeta;
  return zeta3 * zeta3;
}
template <class T>
MAKI_HD T s2_force_share(T xi) {
  const T xi2 = xi * xi;
  const T smooth = T(1.6f) + xi2 * (T(-1.6f) + xi * (T(0.5f) + xi * (T(12.0f / 35) - T(0.15f) * xi)));
  return xi * xi2 * smooth + s2_bump(xi) * (T(3.0f / 35) + xi * (T(18.0f / 35) + T(0.2f) * xi));
}
template <class T>
MAKI_HD T s2_potential_share(T xi) {
  const T xi2 = xi * xi;
  const T tail = T(-0.4f) + xi * (T(0.1f) + xi * (T(2.0f / 35) - T(3.0f / 140) * xi));
  return xi * (T(52.0f / 35) - xi2 * (T(0.8f) + xi2 * tail)) -
         s2_bump(xi) * (xi - T(1.0f)) * (T(3.0f / 35) + T(1.0f / 35) * xi);
}

// c[0] + c[1] t + ... + c[kDegree] t^kDegree.
template <int kDegree, class T>
MAKI_HD T polynomial(const float* c, T t) {
  if constexpr (kDegree == 0)
    return T(c[0]);
  else
    return polynomial<kDegree - 1>(c + 1, t) * t + T(c[0]);
}

// A point mass at softened distance s: mass g and mass p (the latter only with Law::kPotential), without the cutoff.
// Returns t = cut - s^2 (1 without a split): the pair acts where t > 0.
template <class Law, class T>
MAKI_HD T monopole_before_cutoff(const PairParameters& k, T s2, T mass, T& mass_g, T& mass_p) {
  const T inverse = reciprocal_root(s2, Root<Law::kRefine>{});
  const T inverse2 = inverse * inverse;
  if constexpr (Law::kSplit == Split::kNone && !Law::kSpline) {
    mass_p = mass * inverse;
    mass_g = mass_p * inverse2;
    return T(1.0f);
  }
  T g = inverse2 * inverse, p = inverse;
  if constexpr (Law::kSpline) {
    const auto soft = less(s2, T(k.spline_h2));
    if (any(soft)) {
      const T q = s2 * inverse * T(k.spline_inverse_h);
      g = where(soft, g * spline_force_share(q), g);
      if constexpr (Law::kPotential) p = where(soft, p * spline_potential_share(q), p);
    }
  }
  const T t = T(k.cut) - s2;
  if constexpr (Law::kSplit == Split::kPolynomial) {
    g = g - polynomial<Law::kOrder>(k.force, t);
    if constexpr (Law::kPotential) p = p - polynomial<Law::kOrder + 1>(k.potential, t);
  } else if constexpr (Law::kSplit == Split::kS2) {
    const T xi = s2 * inverse * T(k.two_over_r_cut);
    g = g - inverse2 * inverse * s2_force_share(xi);
    if constexpr (Law::kPotential) p = p - inverse * s2_potential_share(xi);
  }
  mass_g = mass * g;
  if constexpr (Law::kPotential) mass_p = mass * p;
  return Law::kSplit == Split::kNone ? T(1.0f) : t;
}
// monopole_before_cutoff() with the cutoff: exactly zero beyond it.
template <class Law, class T>
MAKI_HD void monopole(const PairParameters& k, T s2, T mass, T& mass_g, T& mass_p) {
  const T t = monopole_before_cutoff<Law>(k, s2, mass, mass_g, mass_p);
  if constexpr (Law::kSplit != Split::kNone) {
    const auto inside = less(T(0.0f), t);
    mass_g = zero_unless(inside, mass_g);
    if constexpr (Law::kPotential) mass_p = zero_unless(inside, mass_p);
  }
}

// The smooth (mesh) part of p at zero distance, which a particle's own term keeps: p without 1/s.
template <class Law, class T>
MAKI_HD T own_potential(const PairParameters& k) {
  if constexpr (Law::kSplit == Split::kPolynomial)
    return T(0.0f) - polynomial<Law::kOrder + 1>(k.potential, T(k.cut - (Law::kSpline ? 0.0f : k.softening2)));
  if constexpr (Law::kSplit == Split::kS2) return T(-52.0f / 35 * k.two_over_r_cut);
  return T(0.0f);
}

// The radial factors of a multipole: g = d0 / s^3, 2 g' = -d1 / s^5, 2 g'' = d2 / s^7 with ' = d/d(r^2), and p.
// Newton: 1, 3, 15/2.
template <class T>
struct RadialFactors {
  T d0, d1, d2;
  T p;
};

template <class T>
MAKI_HD void soften_spline(T inverse, T q, RadialFactors<T>& f) {
  const auto soft = less(q, T(1.0f));
  if (!any(soft)) return;
  const auto centre = less(q, T(0.5f));
  const T q2 = q * q, q4 = q2 * q2;
  const T d1 =
      where(centre, q4 * q * (T(76.8f) - T(96.0f) * q), q4 * (T(48.0f) + q * (T(32.0f) * q - T(76.8f))) - T(0.2f));
  const T d2 = where(centre, T(48.0f) * q4 * q2, q4 * (T(24.0f) - T(16.0f) * q2) - T(0.5f));
  f.d0 = where(soft, spline_force_share(q), f.d0);
  f.d1 = where(soft, d1, f.d1);
  f.d2 = where(soft, d2, f.d2);
  f.p = where(soft, inverse * spline_potential_share(q), f.p);
}

// sum c[j] t^j for j <= kOrder (>= 2), its first and half its second derivative, all by Horner's scheme.
template <int kOrder, class T>
MAKI_HD void polynomial_with_slopes(const float* c, T t, T& value, T& first, T& half_second) {
  half_second = T(c[kOrder]);
  first = half_second * t + T(c[kOrder - 1]);
  value = first * t + T(c[kOrder - 2]);
  first = half_second * t + first;
  for (int j = kOrder - 3; j >= 0; --j) {
    half_second = half_second * t + first;
    first = first * t + value;
    value = value * t + T(c[j]);
  }
}

// A power xi^j of 1 - g(xi) enters d1 with the factor 3 - j and d2 with (3 - j) (5 - j) / 2.
template <class Law, class T>
MAKI_HD void subtract_s2(T inverse, T xi, RadialFactors<T>& f) {
  const T xi2 = xi * xi, xi4 = xi2 * xi2;
  const T zeta = larger(xi - T(1.0f), T(0.0f));
  const T zeta2 = zeta * zeta, zeta4 = zeta2 * zeta2;
  // b = zeta^6 B(xi) and its first two derivatives
  const T base = T(3.0f / 35) + xi * (T(18.0f / 35) + T(0.2f) * xi);
  const T slope = T(18.0f / 35) + T(0.4f) * xi;
  const T b0 = zeta4 * zeta2 * base;
  const T b1 = zeta4 * zeta * (T(6.0f) * base + zeta * slope);
  const T b2 = zeta4 * (T(30.0f) * base + zeta * (T(12.0f) * slope + T(0.4f) * zeta));
  const T e1 = T(1.5f) * b0 - T(0.5f) * xi * b1;
  const T e1_slope = b1 - T(0.5f) * xi * b2;
  const T smooth1 = xi4 * xi * (T(1.6f) + xi * (T(-0.75f) + xi * (T(-24.0f / 35) + T(0.375f) * xi)));
  const T smooth2 = xi4 * xi2 * (T(0.375f) + xi * (T(24.0f / 35) - T(0.5625f) * xi));
  f.d0 = f.d0 - s2_force_share(xi);
  f.d1 = f.d1 - T(2.0f) * (smooth1 + e1);
  f.d2 = f.d2 - (T(2.0f) * smooth2 + T(5.0f) * e1 - xi * e1_slope);
  if constexpr (Law::kPotential) f.p = f.p - inverse * s2_potential_share(xi);
}

// A cell's mass and raw second moments about its centre of mass, in mass unit^2, with half their trace.
template <class T>
struct CellTerms {
  T mass, xx, yy, zz, xy, xz, yz, half_trace;
};

// The sums over sources at a target: its acceleration, and minus its potential.
template <class T>
struct PairSums {
  T ax{0.0f}, ay{0.0f}, az{0.0f}, p{0.0f};
};

// Adds a cell at separation (x, y, z): to the acceleration, and m p + (quadrupole) to sum.p.
// With r from the centre of mass to the target:
// Phi_Q = g tr(Q) / 2 + g' (r Q r), a_Q = -(g' tr(Q) + 2 g'' (r Q r)) r - 2 g' Q r.
template <class Law, class T>
MAKI_HD void add_cell(const PairParameters& k, T x, T y, T z, const CellTerms<T>& q, PairSums<T>& sum) {
  const T s2 = softened_square<Law>(k, x, y, z);
  T inverse = reciprocal_root(s2, Root<Law::kRefine>{});
  RadialFactors<T> f{T(1.0f), T(3.0f), T(7.5f), inverse};
  if constexpr (Law::kSpline) soften_spline(inverse, s2 * inverse * T(k.spline_inverse_h), f);
  if constexpr (Law::kSplit == Split::kS2) subtract_s2<Law>(inverse, s2 * inverse * T(k.two_over_r_cut), f);
  T t = T(k.cut) - s2;
  const auto inside = less(T(0.0f), t);
  constexpr bool kMasked = Law::kSplit != Split::kNone && !kIsBranch<decltype(less(t, t))>;
  if constexpr (kMasked) {
    t = larger(t, T(0.0f));                  // far beyond r_cut the powers of t would overflow
    inverse = zero_unless(inside, inverse);  // applies the cutoff to every term below
    if constexpr (Law::kPotential) f.p = zero_unless(inside, f.p);
  }
  const T nx = x * inverse, ny = y * inverse, nz = z * inverse;
  const T qx = q.xx * nx + (q.xy * ny + q.xz * nz);
  const T qy = q.xy * nx + (q.yy * ny + q.yz * nz);
  const T qz = q.xz * nx + (q.yz * ny + q.zz * nz);
  const T nqn = nx * qx + (ny * qy + nz * qz);
  const T inverse2 = inverse * inverse, inverse4 = inverse2 * inverse2;
  T slope = inverse4 * f.d1, radial, quadrupole_p(0.0f);  // slope: -2 s g'
  if constexpr (Law::kSplit == Split::kPolynomial) {
    T value, first, half_second;
    polynomial_with_slopes<Law::kOrder>(k.force, t, value, first, half_second);
    const T s = s2 * inverse, twice = s + s;
    const T g = inverse2 * f.d0 - s * value;                            // s g
    const T curve = inverse4 * f.d2 - twice * (s2 + s2) * half_second;  // 2 s^3 g''
    slope = slope - twice * first;
    radial = q.mass * g + (curve * nqn - slope * q.half_trace);
    if constexpr (Law::kPotential) {
      const T smooth = polynomial<Law::kOrder + 1>(k.potential, t);
      f.p = f.p - (kMasked ? zero_unless(inside, smooth) : smooth);
      quadrupole_p = T(0.5f) * s * slope * nqn - inverse * g * q.half_trace;
    }
  } else {
    radial = q.mass * (inverse2 * f.d0) + inverse4 * (f.d2 * nqn - f.d1 * q.half_trace);
    if constexpr (Law::kPotential) quadrupole_p = inverse2 * inverse * (T(0.5f) * f.d1 * nqn - f.d0 * q.half_trace);
  }
  if constexpr (Law::kSplit != Split::kNone && !kMasked) {
    if (!inside) return;
  }
  sum.ax = (sum.ax + radial * nx) - slope * qx;
  sum.ay = (sum.ay + radial * ny) - slope * qy;
  sum.az = (sum.az + radial * nz) - slope * qz;
  if constexpr (Law::kPotential) sum.p = (sum.p + q.mass * f.p) + quadrupole_p;
}

}  // namespace maki
