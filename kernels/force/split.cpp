#include "kernels/force/split.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/special_functions/bessel.hpp>

#include <cmath>
#include <numbers>

#include "kernels/error.hpp"

namespace maki {

namespace {

double binomial(int n, int j) {
  double value = 1;
  for (int i = 1; i <= j; ++i) value = value * (n - j + i) / i;
  return value;
}

// The polynomial split's coefficients: L(u) = sum force[j] u^j, l(u) = sum potential[j] u^j.
struct Coefficients {
  std::array<double, kMaxSplitOrder + 1> force{};
  std::array<double, kMaxSplitOrder + 2> potential{};
  double adjustment = 0;
};

// The cloud (1 - u)^m has coefficients proportional to binom(m, j) (-1)^j / (2j + 3): its mass inside u over u^(3/2).
// `root` is r_cut / s(r_cut), 1 except with Plummer softening. From p' = -g r: l'(u) = -L(u) / 2, and l(1) = root.
Coefficients polynomial_coefficients(const ForceLaw& law, double root) {
  const int n = law.order;
  Coefficients c;
  for (int m = 0; m <= n; ++m) {
    std::array<double, kMaxSplitOrder + 1> mass{};
    double whole = 0;
    for (int j = 0; j <= m; ++j) whole += mass[j] = binomial(m, j) * (j % 2 ? -1 : 1) / (2 * j + 3);
    for (int j = 0; j <= m; ++j) c.force[j] += law.cloud[m] * mass[j] / whole;
  }
  c.adjustment = root * root * root - 1;
  c.force[n] += c.adjustment;
  c.potential[0] = root;
  for (int j = 0; j <= n; ++j) {
    c.potential[j + 1] = -0.5 * c.force[j] / (j + 1);
    c.potential[0] -= c.potential[j + 1];
  }
  return c;
}

// The transform of the cloud (1 - u)^n of unit mass: (2n + 3)!! j_{n+1}(x) / x^{n+1}, x = k r_cut.
double cloud_window(int n, double x) {
  const int m = n + 1;
  if (x < 1) {  // the series of the spherical Bessel function: the quotient would lose digits
    double term = 1, sum = 1;
    for (int k = 1; k < 12; ++k) sum += term *= -0.5 * x * x / (k * (2 * m + 2 * k + 1));
    return sum;
  }
  double factor = 1;
  for (int odd = 3; odd <= 2 * m + 1; odd += 2) factor *= odd / x;
  return factor * boost::math::sph_bessel(static_cast<unsigned>(m), x);
}

// Shares w_m, sum 1, of the clouds (1 - u)^m, m <= order, whose sum has the least power beyond the mesh's band: the
// integral of W(x)^2 dx from 1.1 pi `cells` on (the long-range force of a random set has the power W^2 / k^2). The band
// ends a little beyond the Nyquist wave number, which is only the cube's nearest face. The minimum is flat, so shares
// are rounded to 2^-20 and every machine finds the same. With few cells high degrees gain nothing, and terms of
// opposite sign would cancel: they are left out.
std::array<double, kMaxSplitOrder + 1> band_limited_cloud(int order, double cells) {
  constexpr double kCellsOfDegree = 0.46;
  const int n = std::clamp(static_cast<int>(cells / kCellsOfDegree), 1, order);
  constexpr double kBand = 1.1, kEnd = 200, kStep = 0.05, kRounded = 1 << 20;
  std::array<double, kMaxSplitOrder + 1> shares{};
  std::array<std::array<double, kMaxSplitOrder + 2>, kMaxSplitOrder + 1> a{};  // power of pairs of clouds | 1
  const double first = kBand * std::numbers::pi * cells;
  for (int step = 0; step * kStep < kEnd; ++step) {
    std::array<double, kMaxSplitOrder + 1> w{};
    for (int m = 0; m <= n; ++m) w[m] = cloud_window(m, first + step * kStep);
    for (int i = 0; i <= n; ++i)
      for (int j = 0; j <= n; ++j) a[i][j] += w[i] * w[j] * (step == 0 ? 0.5 : 1);
  }
  // Lagrange: a w is the same for all; the matrix is positive definite, so Gaussian elimination needs no pivots.
  for (int i = 0; i <= n; ++i) a[i][n + 1] = 1;
  for (int i = 0; i <= n; ++i)
    for (int k = 0; k <= n; ++k) {
      if (k == i) continue;
      const double factor = a[k][i] / a[i][i];
      for (int j = i; j <= n + 1; ++j) a[k][j] -= factor * a[i][j];
    }
  double whole = 0, rounded = 0;
  for (int m = 0; m <= n; ++m) whole += shares[m] = a[m][n + 1] / a[m][m];
  for (int m = 0; m < n; ++m) rounded += shares[m] = std::nearbyint(shares[m] / whole * kRounded) / kRounded;
  shares[n] = 1 - rounded;
  return shares;
}

double softened_root(const ForceLaw& law) {
  if (law.softening_kind != Softening::kPlummer) return 1;
  const double ratio = static_cast<double>(law.softening) / law.r_cut;
  return 1 / std::sqrt(1 + ratio * ratio);
}

double evaluate(const double* c, int degree, double u) {
  double sum = c[degree];
  for (int j = degree - 1; j >= 0; --j) sum = sum * u + c[j];
  return sum;
}

// GADGET's cubic spline (Springel, Yoshida & White 2001, appendix A), q = r / h: g h^3 and p h.
double spline_force(double q) {
  if (q < 0.5) return 32.0 / 3 + q * q * (32 * q - 38.4);
  return 64.0 / 3 - 48 * q + 38.4 * q * q - 32.0 / 3 * q * q * q - 1 / (15 * q * q * q);
}
double spline_potential(double q) {
  if (q < 0.5) return 2.8 - q * q * (16.0 / 3 + q * q * (6.4 * q - 9.6));
  return 3.2 - 1 / (15 * q) - q * q * (32.0 / 3 + q * (-16 + q * (9.6 - 32.0 / 15 * q)));
}

// P3M's g(xi) of two S2 clouds (Ishiyama, Nitadori & Makino 2012, eq. 3): the short-range share of Newton's force.
double s2_share(double xi) {
  if (xi >= 2) return 0;
  const double zeta = std::max(0.0, xi - 1);
  return 1 - xi * xi * xi * (1.6 + xi * xi * (-1.6 + xi * (0.5 + xi * (12.0 / 35 - 0.15 * xi)))) -
         std::pow(zeta, 6) * (3.0 / 35 + xi * (18.0 / 35 + 0.2 * xi));
}
// The short-range share of the potential: xi times the integral of g(xi) / xi^2 from xi to 2.
double s2_potential_share(double xi) {
  if (xi >= 2) return 0;
  const double zeta = std::max(0.0, xi - 1);
  return 1 - xi * (52.0 / 35 - xi * xi * (0.8 + xi * xi * (-0.4 + xi * (0.1 + xi * (2.0 / 35 - 3.0 / 140 * xi))))) +
         std::pow(zeta, 7) * (3 + xi) / 35;
}

void check(bool good, const char* problem, const char* reason, const char* advice) {
  if (!good) throw Error(problem, reason, advice);
}

void check_softening(const ForceLaw& law, double softening) {
  check(softening > 0, "the softening is not positive", "the force of two particles at one point would be undefined",
        "give a softening above 0");
  check(law.r_cut == 0 || softening < largest_softening(law.softening_kind, law.r_cut),
        "the softening reaches half of the short-range cutoff", "the mesh force would have to be softened too",
        "reduce the softening or enlarge r_cut");
}

void set_coefficients(ForceLaw& law) {
  const Coefficients c = polynomial_coefficients(law, softened_root(law));
  std::copy(c.force.begin(), c.force.end(), law.force.begin());
  std::copy(c.potential.begin(), c.potential.end(), law.potential.begin());
  law.adjustment = std::abs(c.adjustment);
}

}  // namespace

ForceLaw make_force_law(Split split, int order, double r_cut, Softening kind, double softening, double cells_to_cut) {
  ForceLaw law;
  law.split = split;
  law.softening_kind = kind;
  law.softening = static_cast<float>(softening);
  if (split != Split::kNone) {
    check(r_cut > 0 && r_cut < 0.5, "the cutoff of the short-range force is outside (0, 1/2) of the box side",
          "beyond half the side the nearest image is no longer the only one",
          "use a finer mesh or fewer cells to r_cut");
    law.r_cut = static_cast<float>(r_cut);
  }
  check_softening(law, softening);
  if (split != Split::kPolynomial) return law;

  check(order >= 1 && order <= kMaxSplitOrder, "the order of the polynomial split is outside [1, 8]", "",
        "choose n = 4, 5 or 6");
  law.order = order;
  if (cells_to_cut > 0)
    law.cloud = band_limited_cloud(order, cells_to_cut);
  else
    law.cloud[order] = 1;
  set_coefficients(law);
  return law;
}

ForceLaw with_softening(ForceLaw law, double softening) {
  check_softening(law, softening);
  law.softening = static_cast<float>(softening);
  if (law.split == Split::kPolynomial) set_coefficients(law);
  return law;
}

double force_factor(const ForceLaw& law, double r2) {
  const double r = std::sqrt(r2), eps = law.softening, r_cut = law.r_cut;
  const bool spline = law.softening_kind == Softening::kSpline;
  if (law.split != Split::kNone && r >= r_cut) return 0;
  const double s = spline ? r : std::sqrt(r2 + eps * eps);
  const double h = kSplineSupport * eps;
  const double g = spline && r < h ? spline_force(r / h) / (h * h * h) : 1 / (s * s * s);
  if (law.split == Split::kNone) return g;
  if (law.split == Split::kS2) {
    const double xi = 2 * s / r_cut;
    return s > 0 ? g - (1 - s2_share(xi)) / (s * s * s) : g - 12.8 / (r_cut * r_cut * r_cut);
  }
  const Coefficients c = polynomial_coefficients(law, softened_root(law));
  return g - evaluate(c.force.data(), law.order, r2 / (r_cut * r_cut)) / (r_cut * r_cut * r_cut);
}

double potential_factor(const ForceLaw& law, double r2) {
  const double r = std::sqrt(r2), eps = law.softening, r_cut = law.r_cut;
  const bool spline = law.softening_kind == Softening::kSpline;
  if (law.split != Split::kNone && r >= r_cut) return 0;
  const double s = spline ? r : std::sqrt(r2 + eps * eps);
  const double h = kSplineSupport * eps;
  const double p = spline && r < h ? spline_potential(r / h) / h : 1 / s;
  if (law.split == Split::kNone) return p;
  if (law.split == Split::kS2) {
    const double xi = 2 * s / r_cut;
    return s > 0 ? p - (1 - s2_potential_share(xi)) / s : p - 104.0 / 35 / r_cut;
  }
  const Coefficients c = polynomial_coefficients(law, softened_root(law));
  return p - evaluate(c.potential.data(), law.order + 1, r2 / (r_cut * r_cut)) / r_cut;
}

double potential_integral(const ForceLaw& law) {
  if (law.split == Split::kNone) return 0;
  // r = eps sinh(x) makes the integrand smooth at both scales.
  const double eps = law.softening;
  const auto shell = [&](double x) {
    const double r = eps * std::sinh(x);
    return 4 * M_PI * r * r * potential_factor(law, r * r) * eps * std::cosh(x);
  };
  // Pieces end where the spline or S2 changes its formula.
  const double h = law.softening_kind == Softening::kSpline ? kSplineSupport * eps : eps;
  const double ends[] = {0, 0.5 * h, h, 0.5 * law.r_cut, 1.0 * law.r_cut};
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    using Rule = boost::math::quadrature::gauss_kronrod<double, 61>;
    sum += Rule::integrate(shell, std::asinh(ends[i] / eps), std::asinh(ends[i + 1] / eps), 5, 1e-12);
  }
  return sum;
}

double long_range_window(const ForceLaw& law, double k_r_cut) {
  if (law.split == Split::kNone) return 1;
  const double x = std::abs(k_r_cut);
  if (law.split == Split::kS2) {
    // The S2 cloud (Hockney & Eastwood 1988, chapter 8): 12 (2 - 2 cos y - y sin y) / y^4 for each of the two clouds.
    const double y = 0.5 * x;
    const double cloud = y < 0.3 ? 1 - y * y / 15 + y * y * y * y / 560 - std::pow(y, 6) / 37800
                                 : 12 * (2 - 2 * std::cos(y) - y * std::sin(y)) / (y * y * y * y);
    return cloud * cloud;
  }
  double sum = 0;
  for (int m = 0; m <= law.order; ++m)
    if (law.cloud[m] != 0) sum += law.cloud[m] * cloud_window(m, x);
  return sum;
}

namespace {

// L(u) = sum_j d_j (1 - u)^j, j <= m, with d_0 = 1, d_{j+1} = d_j (2j + 3) / (2j + 2) for the cloud (1 - u)^m, from 3 L
// + 2u L' ~ (1 - u)^m. A sum of clouds has d_j times the sum of the shares with m >= j. The change of the last
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
