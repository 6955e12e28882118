#include "kernels/force/pair_parameters.hpp"

#include <cmath>

namespace maki {
namespace {

// L(u) = sum_j d_j (1 - u)^j, j <= m, with d_0 = 1, d_{j+1} = d_j (2j + 3) / (2j + 2) for the cloud (1 - u)^m, from
// 3 L + 2u L' ~ (1 - u)^m: a sum of clouds has d_j times the share of those with m >= j. The change of the last
// coefficient, `adjustment` u^n, is spread over the powers of 1 - u.
void shift_polynomial(const ForceLaw& law, double r_cut2, double cut, PairParameters& k) {
  const int n = law.order;
  const double adjustment = r_cut2 / cut * std::sqrt(r_cut2 / cut) - 1;
  double taylor = 1, binomial = 1, share = 1;
  k.potential[0] = static_cast<float>(1 / std::sqrt(cut));
  for (int j = 0; j <= n; ++j) {
    const double c = (share * taylor + adjustment * binomial) / std::pow(r_cut2, j + 1.5);
    k.force[j] = static_cast<float>(c);
    k.potential[j + 1] = static_cast<float>(0.5 * c / (j + 1));
    share -= law.cloud[j];
    taylor *= (2 * j + 3) / (2.0 * j + 2);
    binomial *= -static_cast<double>(n - j) / (j + 1);
  }
}

}  // namespace

PairParameters make_pair_parameters(const ForceLaw& law) {
  PairParameters k{};
  k.split = law.split;
  k.softening = law.softening_kind;
  k.refine_root = law.refine_root;
  k.unit = law.split == Split::kNone ? std::ldexp(1.0f, -12) : std::exp2(std::floor(std::log2(law.r_cut)));
  k.bits_to_unit = std::ldexp(1 / k.unit, -32);

  const double eps = static_cast<double>(law.softening) / k.unit;
  const bool spline = law.softening_kind == Softening::kSpline;
  const double h = kSplineSupport * eps;
  k.softening2 = static_cast<float>(spline ? h * h / (1024.0 * 1024.0) : eps * eps);
  k.spline_h2 = static_cast<float>(h * h);
  k.spline_inverse_h = static_cast<float>(1 / h);
  if (law.split == Split::kNone) return k;

  const double r_cut = static_cast<double>(law.r_cut) / k.unit;
  // S2 is a function of s, zero from s = r_cut on; the polynomial split is zero from r = r_cut on.
  const bool cut_in_s = spline || law.split == Split::kS2;
  const double cut = r_cut * r_cut + (cut_in_s ? 0 : eps * eps);
  k.cut = static_cast<float>(cut);
  k.two_over_r_cut = static_cast<float>(2 / r_cut);
  if (law.split != Split::kPolynomial) return k;
  shift_polynomial(law, r_cut * r_cut, cut, k);
  for (const int order : kCompiledOrders) {
    k.order = order;
    if (order >= law.order) break;
  }
  return k;
}

}  // namespace maki
