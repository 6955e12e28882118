// The force law between two points: Newton, softened, and split into a short-range part (tree) and a long-range part
// (mesh). docs/design.md, "Force split".
#pragma once

#include <array>

namespace maki {

enum class Softening { kPlummer, kSpline };
enum class Split {
  kNone,        // the whole force: isolated systems
  kPolynomial,  // clouds of polynomials in r^2: compact, no table, close to band-limited on the mesh
  kS2,          // SUSHI and GreeM: S2 clouds of diameter r_cut (P3M's g(xi))
};

inline constexpr int kMaxSplitOrder = 8;

// The short-range law in closed form, ready for kernels. All lengths in sides.
// With u = r^2 / r_cut^2 and s^2 = r^2 + softening^2:  g(r^2) = 1/s^3 - L(u) / r_cut^3 for r < r_cut, else 0;
// L(u) = sum_j c_j u^j, whose last coefficient is adjusted so that g(r_cut) = 0 with softening;
// p(r^2) is the potential with p' = -g r and p(r_cut) = 0.
struct ForceLaw {
  Split split = Split::kNone;
  Softening softening_kind = Softening::kPlummer;
  int order = 0;                                      // degree n of the polynomial split's cloud in u
  float softening = 0;                                // sides (Plummer length; the spline's h is 2.8 times this)
  float r_cut = 0;                                    // sides; 0 with kNone
  std::array<double, kMaxSplitOrder + 1> cloud{};     // shares w_m of (1 - u)^m in the cloud, sum 1
  std::array<float, kMaxSplitOrder + 1> force{};      // c_j
  std::array<float, kMaxSplitOrder + 2> potential{};  // coefficients of l(u): p = 1/s - l(u) / r_cut
  double adjustment = 0;  // size of the last coefficient's change relative to Newton at r_cut
  bool refine_root =
      true;  // CPU, AVX-512: a Newton step after the 14-bit reciprocal root (bench/NOTES.md, pair formula)
};

// The spline's support in units of its Plummer length (GADGET: the same depth of a particle's potential).
inline constexpr double kSplineSupport = 2.8;
// The bound on the softening length beside a mesh, in the unit of r_cut: the support stays below r_cut / 2.
inline double largest_softening(Softening kind, double r_cut) {
  return 0.5 * r_cut / (kind == Softening::kSpline ? kSplineSupport : 1);
}

// Lengths in sides; kNone ignores order and r_cut. Throws Error where order is outside [1, kMaxSplitOrder]
// (polynomial), softening <= 0, r_cut outside (0, 0.5), or softening >= largest_softening().
// S2 with Plummer softening takes xi = 2 s / r_cut, as GreeM does: the force is zero where s >= r_cut.
// cells_to_cut: r_cut in cells of the mesh that carries the long-range part. The polynomial split's cloud then has the
// shares of (1 - u)^m, m <= n, that leave the least power beyond the mesh's resolution; the error of the mesh force is
// a third of that with (1 - u)^n alone. 0: (1 - u)^n alone.
ForceLaw make_force_law(Split split, int order, double r_cut, Softening kind, double softening,
                        double cells_to_cut = 0);

// The law with another softening length in sides. Throws as make_force_law.
ForceLaw with_softening(ForceLaw law, double softening);

// g(r^2) and p(r^2) of the law in double, for references and tests.
double force_factor(const ForceLaw& law, double r2);
double potential_factor(const ForceLaw& law, double r2);

// Integral of p over all space, sides^2: a uniform background of density 1 adds minus this to the potential. 0 with
// kNone, which has no background.
double potential_integral(const ForceLaw& law);

// Fourier factor of the long-range force: the cloud's transform W(k r_cut), 1 at 0 (spherical Bessel form for the
// polynomial split, S2's for S2).
double long_range_window(const ForceLaw& law, double k_r_cut);

// The parameters of a force law for the inner loops: floats in a unit of length that suits the law.
//
// The unit is `unit` sides, a power of two, so that scaling is exact: just below r_cut with a split, else 2^-12 sides
// (the softening may be 2^-24 sides: neither 1/s^4 nor its inverse leaves float's range). With s the softened distance
// and t = cut - s^2 = r_cut^2 - r^2, pairs act where t > 0, and the polynomial split is
// g = 1/s^3 - sum force[j] t^j,  p = 1/s - sum potential[j] t^j.
// In powers of 1 - u the L(u) of the cloud (1 - u)^n is the Taylor polynomial of u^(-3/2) about 1. Its terms have one
// sign, and those of sums of clouds nearly so; floats thus lose next to nothing, unlike with powers of u.
// Plain arrays: the code for one instruction set must not instantiate templates of the standard library.
struct PairParameters {
  Split split;
  Softening softening;
  bool refine_root;
  int order;           // of the polynomials below: the next compiled order, zero-padded
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

// The law in the form in which kernels get it.
PairParameters make_pair_parameters(const ForceLaw& law);

}  // namespace maki
