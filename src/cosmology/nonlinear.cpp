#include "src/cosmology/nonlinear.hpp"

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/tools/roots.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numbers>
#include <set>
#include <utility>
#include <vector>

namespace maki {

namespace {

constexpr double kLeastRadius = 1e-3, kMostRadius = 1e3;  // Mpc/h

double cubed(double x) { return x * x * x; }
double delta2(double k, double power) { return cubed(k) * power / (2 * std::numbers::pi * std::numbers::pi); }

// sigma^2, its -d/dlnR, and the d/dlnR of that.
struct Moments {
  double sigma2 = 0, first = 0, second = 0;
};

// Integrals over x = k R, with panels of a quarter in ln x up to negligible exp(-x^2). Below the first panel Delta^2 is
// a power law, added in closed form.
class GaussianMoments {
 public:
  explicit GaussianMoments(const std::function<double(double)>& linear) : linear_(linear) {}

  Moments at(double radius) const {
    constexpr double begin = -16, panel = 0.25;
    constexpr int panels = 71;
    const double low = std::exp(begin) / radius;
    const double slope = 3 + std::log(linear_(std::numbers::e * low) / linear_(low));
    Moments sum{delta2(low, linear_(low)) / slope, 0, 0};
    for (int i = 0; i < panels; ++i) add(radius, begin + i * panel, begin + (i + 1) * panel, sum);
    return sum;
  }

 private:
  using Rule = boost::math::quadrature::gauss<double, 10>;
  void add(double radius, double from, double to, Moments& sum) const {
    const double middle = (from + to) / 2, half = (to - from) / 2;
    const auto node = [&](double offset, double weight) {
      const double x = std::exp(middle + half * offset), x2 = x * x, k = x / radius;
      const double share = half * weight * delta2(k, linear_(k)) * std::exp(-x2);
      sum.sigma2 += share;
      sum.first += 2 * x2 * share;
      sum.second += 4 * x2 * (1 - x2) * share;
    };
    for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
      node(Rule::abscissa()[i], Rule::weights()[i]);
      node(-Rule::abscissa()[i], Rule::weights()[i]);
    }
  }

  const std::function<double(double)>& linear_;
};

}  // namespace

std::optional<NonlinearScale> nonlinear_scale(const std::function<double(double)>& linear, double least, double most) {
  const GaussianMoments moments(linear);
  const auto excess = [&](double log_radius) { return std::log(moments.at(std::exp(log_radius)).sigma2); };
  const double low = std::log(least), high = std::log(most), at_low = excess(low), at_high = excess(high);
  if (!(at_low > 0 && at_high < 0)) return {};
  std::uintmax_t steps = 100;
  const auto bracket = boost::math::tools::toms748_solve(excess, low, high, at_low, at_high,
                                                         boost::math::tools::eps_tolerance<double>(40), steps);
  const double radius = std::exp((bracket.first + bracket.second) / 2);
  const Moments m = moments.at(radius);
  const double fall = m.first / m.sigma2;  // -dln sigma^2/dlnR
  return NonlinearScale{radius, fall - 3, fall * fall + m.second / m.sigma2};
}

HalofitPower::HalofitPower(const PowerSpectrum& power, const Cosmology& cosmology, double scale_factor) {
  const double growth = cosmology.growth(scale_factor).d1;
  linear_ = [power, growth](double k) { return growth * growth * power(k); };
  const double unit = length_unit_in_mpc_h(cosmology.units(), cosmology.background().hubble);
  scale_ = nonlinear_scale(linear_, kLeastRadius / unit, kMostRadius / unit);
  if (!scale_) return;
  const Background& background = cosmology.background();
  const double a = scale_factor, matter = cosmology.omega_matter(a), cubed = matter / background.omega0 * a * a * a;
  const double lambda = cubed * background.omega_lambda * background.dark_energy(a);
  const double rest = lambda + cubed * background.omega_curvature() / (a * a);
  fit_ = coefficients(*scale_, matter, rest < 0.01 ? 1 : std::clamp(lambda / rest, 0.0, 1.0),
                      lambda * (1 + background.pressure_ratio(a)));
}

HalofitPower::Coefficients HalofitPower::coefficients(const NonlinearScale& scale, double omega_matter, double flat,
                                                      double dark) {
  const double n = scale.slope, c = scale.curvature, n2 = n * n, n3 = n2 * n, n4 = n2 * n2;
  Coefficients fit;
  fit.a = std::pow(10, 1.5222 + 2.8553 * n + 2.3706 * n2 + 0.9903 * n3 + 0.2250 * n4 - 0.6038 * c +
                           0.1749 * dark);                                                // eq. A6
  fit.b = std::pow(10, -0.5642 + 0.5864 * n + 0.5716 * n2 - 1.5474 * c + 0.2279 * dark);  // eq. A7
  fit.c = std::pow(10, 0.3698 + 2.0404 * n + 0.8161 * n2 + 0.5869 * c);                   // eq. A8
  fit.gamma = 0.1971 - 0.0843 * n + 0.8460 * c;                                           // eq. A9
  fit.alpha = std::abs(6.0835 + 1.3373 * n - 0.1959 * n2 - 5.5274 * c);                   // eq. A10
  fit.beta = 2.0379 - 0.7354 * n + 0.3157 * n2 + 1.2490 * n3 + 0.3980 * n4 - 0.1682 * c;  // eq. A11
  fit.nu = std::pow(10, 5.2105 + 3.6902 * n);                                             // eq. A13
  // Of flat universes (eq. A14), and of those without a cosmological constant (Smith et al., appendix C).
  const auto f = [&](double of_flat, double of_open) {
    return flat * std::pow(omega_matter, of_flat) + (1 - flat) * std::pow(omega_matter, of_open);
  };
  fit.f1 = f(-0.0307, -0.0732);
  fit.f2 = f(-0.0585, -0.1423);
  fit.f3 = f(0.0743, 0.0725);
  return fit;
}

double HalofitPower::operator()(double k) const {
  const double linear = linear_(k);
  if (!scale_) return linear;
  const double y = k * scale_->radius, d = delta2(k, linear);
  const Coefficients& f = fit_;
  const double two_halo = d * std::pow(1 + d, f.beta) / (1 + f.alpha * d) * std::exp(-y / 4 - y * y / 8);  // eq. A2
  const double one_halo = f.a * std::pow(y, 3 * f.f1) /
                          (1 + f.b * std::pow(y, f.f2) + std::pow(f.c * f.f3 * y, 3 - f.gamma)) /
                          (1 + f.nu / (y * y));  // eq. A3
  return (two_halo + one_halo) / delta2(k, 1);
}

double tinker_multiplicity(double sigma, double redshift) {
  constexpr double overdensity = 200;
  const double grown = 1 + redshift;
  const double alpha = std::pow(10, -std::pow(0.75 / std::log10(overdensity / 75), 1.2));
  const double amplitude = 0.186 * std::pow(grown, -0.14), a = 1.47 * std::pow(grown, -0.06);
  const double b = 2.57 * std::pow(grown, -alpha), c = 1.19;
  return amplitude * (std::pow(sigma / b, -a) + 1) * std::exp(-c / (sigma * sigma));
}

MassFunction::MassFunction(PowerSpectrum power, const Cosmology& cosmology, double scale_factor)
    : power_(std::move(power)), density_(cosmology.mean_density()), growth_(cosmology.growth(scale_factor).d1),
      redshift_(1 / scale_factor - 1) {}

double MassFunction::sigma(double mass) const {
  return growth_ * power_.sigma(std::cbrt(3 * mass / (4 * std::numbers::pi * density_)));
}

double MassFunction::operator()(double mass) const {
  constexpr double step = 0.05;  // in ln M; sigma is so smooth that its slope is accurate to 1e-4
  const double slope = std::log(sigma(mass * std::exp(-step)) / sigma(mass * std::exp(step))) / (2 * step);
  return tinker_multiplicity(sigma(mass), redshift_) * density_ / mass * slope;
}

namespace {

// F2 of two sides; mu: cosine of the angle between their vectors.
double second_order_kernel(double a, double b, double mu) {
  return 5.0 / 7 + mu * (a / b + b / a) / 2 + 2.0 / 7 * mu * mu;
}

// Sampled wave numbers of a shell, with their numbers of modes and power.
struct Sampled {
  std::vector<double> k, modes, power;
};

// Edges of shells and closed lines of triangles are lengths of waves, equal but for rounding.
constexpr double kRounding = 1e-12;
constexpr double kSmooth = 10;  // number of waves above which a shell counts as continuous

using WaveVector = std::array<int, 3>;  // in units of the lattice's spacing

int square_of(const WaveVector& k) { return k[0] * k[0] + k[1] * k[1] + k[2] * k[2]; }

// Modes of the lattice of waves `wave` apart.
std::vector<WaveVector> lattice_modes(const WaveShell& shell, double wave) {
  std::vector<WaveVector> modes;
  const int most = static_cast<int>(shell.end / wave);
  for (int x = -most; x <= most; ++x)
    for (int y = -most; y <= most; ++y)
      for (int z = -most; z <= most; ++z) {
        const double k = wave * std::sqrt(square_of({x, y, z}));
        if (k > 0 && k >= shell.begin * (1 - kRounding) && k < shell.end * (1 - kRounding)) modes.push_back({x, y, z});
      }
  return modes;
}

void take_lattice(const WaveShell& shell, double wave, Sampled& all) {
  std::map<int, int> by_square;
  for (const WaveVector& mode : lattice_modes(shell, wave)) ++by_square[square_of(mode)];
  for (const auto& [square, count] : by_square) {
    all.k.push_back(wave * std::sqrt(square));
    all.modes.push_back(count);
  }
}

// The mean over the closed triangles of the lattice.
double lattice_mean(const std::function<double(double)>& power, const std::array<WaveShell, 3>& shells, double wave) {
  std::array<std::vector<WaveVector>, 3> modes;
  std::map<int, double> powers;  // by the square of a mode
  for (std::size_t i = 0; i < 3; ++i) {
    modes[i] = lattice_modes(shells[i], wave);
    for (const WaveVector& mode : modes[i]) powers.try_emplace(square_of(mode), 0);
  }
  for (auto& [square, value] : powers) value = power(wave * std::sqrt(square));
  std::set<int> closing;
  for (const WaveVector& mode : modes[2]) closing.insert(square_of(mode));
  std::map<std::array<int, 3>, double> triangles;  // by the squares of their sides
  for (const WaveVector& a : modes[0])
    for (const WaveVector& b : modes[1])
      ++triangles[{square_of(a), square_of(b), square_of({a[0] + b[0], a[1] + b[1], a[2] + b[2]})}];
  double sum = 0, count = 0;
  for (const auto& [squares, number] : triangles) {
    if (!closing.contains(squares[2])) continue;
    std::array<double, 3> k{}, p{};
    for (std::size_t i = 0; i < 3; ++i) k[i] = wave * std::sqrt(squares[i]), p[i] = powers[squares[i]];
    sum += number * tree_bispectrum(k, p);
    count += number;
  }
  return count > 0 ? sum / count : 0;
}

void take_parts(const WaveShell& shell, Sampled& all) {
  constexpr int parts = 16;
  for (int i = 0; i < parts; ++i) {
    all.k.push_back(shell.begin + (shell.end - shell.begin) * (i + 0.5) / parts);
    all.modes.push_back(all.k.back() * all.k.back());
  }
}

Sampled sampled(const WaveShell& shell, double wave, const std::function<double(double)>& power) {
  Sampled all;
  if (shell.end < kSmooth * wave)
    take_lattice(shell, wave, all);
  else
    take_parts(shell, all);
  std::transform(all.k.begin(), all.k.end(), std::back_inserter(all.power), power);
  return all;
}

bool closes(double a, double b, double c) {
  const double rounding = kRounding * (a + b);
  return c <= a + b + rounding && c >= std::abs(a - b) - rounding;
}

}  // namespace

double tree_bispectrum(const std::array<double, 3>& k, const std::array<double, 3>& powers) {
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t j = (i + 1) % 3, other = (i + 2) % 3;
    const double mu = (k[other] * k[other] - k[i] * k[i] - k[j] * k[j]) / (2 * k[i] * k[j]);
    sum += 2 * second_order_kernel(k[i], k[j], mu) * powers[i] * powers[j];
  }
  return sum;
}

double mean_tree_bispectrum(const std::function<double(double)>& power, const std::array<WaveShell, 3>& shells,
                            double wave) {
  if (std::ranges::all_of(shells, [&](const WaveShell& shell) { return shell.end < kSmooth * wave; }))
    return lattice_mean(power, shells, wave);
  const Sampled a = sampled(shells[0], wave, power), b = sampled(shells[1], wave, power),
                c = sampled(shells[2], wave, power);
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < a.k.size(); ++i) {
    for (std::size_t j = 0; j < b.k.size(); ++j) {
      for (std::size_t l = 0; l < c.k.size(); ++l) {
        if (!closes(a.k[i], b.k[j], c.k[l])) continue;
        const double weight = a.modes[i] * b.modes[j] * c.modes[l] / (a.k[i] * b.k[j] * c.k[l]);
        weights += weight;
        sum += weight * tree_bispectrum({a.k[i], b.k[j], c.k[l]}, {a.power[i], b.power[j], c.power[l]});
      }
    }
  }
  return weights > 0 ? sum / weights : 0;
}

}  // namespace maki
