#include "src/cosmology/cosmology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/constants/constants.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/tools/minima.hpp>

#include <cmath>
#include <stdexcept>

#include "kernels/error.hpp"

namespace maki {

namespace {

constexpr double kGrowthStart = 1e-6;     // scale factor at which curvature and Lambda are corrections of first order
constexpr double kRadiationEra = 1e-3;    // a / a_eq, small where the series of d2 is used
constexpr double kEarliest = 1e-12;       // at which growth begins even where there is hardly any radiation
constexpr double kGrowthStep = 1.0 / 64;  // in ln a; Runge-Kutta with variables d1/s and d2/s^2 then errs by 1e-9

constexpr auto unweighted = [](double) { return 1; };

// 100 km/s/(Mpc/h) as velocity/length.
double hubble_constant(const Background& background, const UnitSystem& units) {
  return 100 * 1e5 / units.velocity_cgs * length_unit_in_mpc_h(units, background.hubble);
}

// Scale factor at which matter and radiation have one density.
double equality(const Background& background) { return background.omega_radiation / background.omega0; }

// s = a + 2/3 a_eq, to which d1 is proportional in a universe of matter and radiation.
double growing_scale(const Background& background, double a) { return a + 2.0 / 3 * equality(background); }

// Second-order system of the growing modes in g1 = d1/s and g2 = d2/s^2, which are constant in the matter era.
using GrowthState = std::array<double, 4>;  // g1, dg1/dlna, g2, dg2/dlna

// First order in curvature: d1 = s (1 - 4/7 w), w = Omega_k a / Omega_0. With radiation the second-order mode is the one
// that begins at 0: d2 / a_eq^2 = -2/3 y - 1/2 y^2 + 1/36 y^3, y = a / a_eq.
GrowthState early_modes(const Background& background, double a) {
  const double w = background.omega_curvature() / background.omega0 * a;
  GrowthState g = {1 - 4.0 / 7 * w, -4.0 / 7 * w, -3.0 / 7, 0};
  if (background.omega_radiation > 0 && a < equality(background)) {
    const double y = a / equality(background), s = y + 2.0 / 3;
    const double d = y * (-2.0 / 3 + y * (-1.0 / 2 + y / 36)), slope = y * (-2.0 / 3 + y * (-1 + y / 12));
    g[2] = d / (s * s);
    g[3] = (slope - 2 * y / s * d) / (s * s);
  }
  return g;
}

GrowthState growth_slope(const Cosmology& cosmology, double log_a, const GrowthState& g) {
  const double a = std::exp(log_a);
  const double drag = 2 + cosmology.log_hubble_slope(a);
  const double source = 1.5 * cosmology.omega_matter(a);
  const double q = a / growing_scale(cosmology.background(), a);  // d ln s / d ln a; its own slope is q (1 - q)
  return {g[1], -(2 * q + drag) * g[1] - (q * (1 + drag) - source) * g[0], g[3],
          -(4 * q + drag) * g[3] - (2 * q * (1 + q) + 2 * q * drag - source) * g[2] - source * g[0] * g[0]};
}

GrowthState advance(const GrowthState& g, const GrowthState& slope, double step) {
  GrowthState result;
  for (std::size_t i = 0; i < g.size(); ++i) result[i] = g[i] + step * slope[i];
  return result;
}

GrowthState runge_kutta_step(const Cosmology& cosmology, double log_a, double step, const GrowthState& g) {
  const GrowthState k1 = growth_slope(cosmology, log_a, g);
  const GrowthState k2 = growth_slope(cosmology, log_a + step / 2, advance(g, k1, step / 2));
  const GrowthState k3 = growth_slope(cosmology, log_a + step / 2, advance(g, k2, step / 2));
  const GrowthState k4 = growth_slope(cosmology, log_a + step, advance(g, k3, step));
  GrowthState mean;
  for (std::size_t i = 0; i < g.size(); ++i) mean[i] = (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]) / 6;
  return advance(g, mean, step);
}

}  // namespace

double length_unit_in_mpc_h(const UnitSystem& units, double hubble) {
  return units.length_cgs / kMpcCgs * (units.with_h ? 1 : hubble);
}

Cosmology::Cosmology(const Background& background, const UnitSystem& units)
    : background_(background), units_(units), hubble0_(hubble_constant(background, units)),
      growth_start_(background.omega_radiation > 0
                        ? std::clamp(kRadiationEra * equality(background), kEarliest, kGrowthStart)
                        : kGrowthStart) {
  if (!(background.omega0 > 0) || !(background.hubble > 0)) {
    throw Error("The cosmology has no matter or no expansion",
                fmt::format("Omega0 is {:g}, h is {:g}", background.omega0, background.hubble),
                "give positive values for both");
  }
  if (!(background.omega_radiation >= 0) || !std::isfinite(background.omega_radiation))
    throw Error("The density of radiation has to be 0 or more",
                fmt::format("Omega_radiation is {:g}", background.omega_radiation), "today it is some 1e-4");
  if (!std::isfinite(background.w0) || !(background.w0 + background.wa <= -1.0 / 3 + 1e-12))
    throw Error("Dark energy would not be negligible early on",
                fmt::format("w0 = {} and wa = {} make w0 + wa {}, which is above -1/3", background.w0, background.wa,
                            background.w0 + background.wa),
                "lower one of them");
  require_past();
  const double begin = std::log(growth_start_);
  growing_modes_.push_back(early_modes(background, growth_start_));
  for (int i = 0; begin + i * kGrowthStep < 0; ++i)
    growing_modes_.push_back(runge_kutta_step(*this, begin + i * kGrowthStep, kGrowthStep, growing_modes_.back()));
  d1_today_ = unnormalised_growth(1).d1;
}

// The least H^2 of the past, about which a universe would bounce, lies within a hundredth of a place where it is less than
// on both sides.
void Cosmology::require_past() const {
  const auto square = [this](double log_a) { return background_.expansion_squared(std::exp(log_a)); };
  const auto require = [](double log_a, double value) {
    if (!(value > 0))
      throw Error("This universe has no big bang", fmt::format("H^2 is not positive at a = {:g}", std::exp(log_a)),
                  "lower OmegaLambda or raise Omega0");
  };
  constexpr double kStep = 0.01;
  for (double log_a = 0; log_a > std::log(1e-3); log_a -= kStep) {
    const double here = square(log_a);
    require(log_a, here);
    if (here > square(log_a - kStep) || here > square(log_a + kStep)) continue;
    const auto [at, least] =
        boost::math::tools::brent_find_minima(square, log_a - kStep, std::min(log_a + kStep, 0.0), 50);
    require(at, least);
  }
}

void Cosmology::require_expansion(double first, double last) const {
  for (double next = first; next < 1.01 * last; next *= 1.01) {
    const double a = std::min(next, last);
    if (!(expansion(a) > 0))
      throw Error("This universe turns around before the end", fmt::format("H^2 is not positive at a = {:g}", a),
                  "end earlier (time.end_redshift), or raise OmegaLambda");
  }
}

double Cosmology::hubble(double a) const { return hubble0_ * expansion(a); }

double Cosmology::omega_matter(double a) const {
  const double e = expansion(a);
  return background_.omega0 / (a * a * a * e * e);
}

double Cosmology::log_hubble_slope(double a) const {
  const Background& b = background_;
  const double e = expansion(a);
  return -((2 * b.omega_radiation / a + 1.5 * b.omega0) / a + b.omega_curvature()) / (a * a * e * e) -
         1.5 * (1 + b.pressure_ratio(a)) * b.omega_lambda * b.dark_energy(a) / (e * e);
}

double Cosmology::mean_density() const {
  const double critical =
      3 * hubble0_ * hubble0_ / (8 * boost::math::constants::pi<double>() * units_.gravitational_constant());
  return background_.omega0 * critical;
}

template <class Weight>
double Cosmology::integrate_over_time(double from, double to, int power_of_a, const Weight& weight) const {
  const auto integrand = [&](double log_a) {
    const double a = std::exp(log_a);
    return weight(a) / (std::pow(a, power_of_a) * hubble(a));
  };
  // Panels of half an e-fold: the integrand is so smooth in ln a that 20 points leave only rounding errors.
  const double begin = std::log(from), span = std::log(to) - begin;
  const int panels = std::max(1, static_cast<int>(std::ceil(2 * std::abs(span))));
  double sum = 0;
  for (int i = 0; i < panels; ++i) {
    sum += boost::math::quadrature::gauss<double, 20>::integrate(integrand, begin + span * i / panels,
                                                                 begin + span * (i + 1) / panels);
  }
  return sum;
}

double Cosmology::kick_factor(double from, double to) const { return integrate_over_time(from, to, 1, unweighted); }
double Cosmology::drift_factor(double from, double to) const { return integrate_over_time(from, to, 2, unweighted); }
double Cosmology::time_between(double from, double to) const { return integrate_over_time(from, to, 0, unweighted); }

double Cosmology::growing_kick_factor(double from, double to, double at) const {
  const double known = unnormalised_growth(at).d1;
  return integrate_over_time(from, to, 1, [&](double a) { return unnormalised_growth(a).d1 / known; });
}

double Cosmology::growing_drift_factor(double from, double to, double at) const {
  const double known = growing_momentum(at);
  return integrate_over_time(from, to, 2, [&](double a) { return growing_momentum(a) / known; });
}

double Cosmology::growing_momentum(double a) const {
  const Growth growth = unnormalised_growth(a);
  return a * a * hubble(a) * growth.f1 * growth.d1;
}

Growth Cosmology::unnormalised_growth(double a) const {
  const double begin = std::log(growth_start_), end = std::log(a);
  const double steps = (end - begin) / kGrowthStep;
  GrowthState g = early_modes(background_, a);
  if (steps > 0) {
    const std::size_t node = std::min(static_cast<std::size_t>(steps), growing_modes_.size() - 1);
    g = growing_modes_[node];
    double log_a = begin + static_cast<double>(node) * kGrowthStep;
    for (; end - log_a > kGrowthStep; log_a += kGrowthStep) g = runge_kutta_step(*this, log_a, kGrowthStep, g);
    g = runge_kutta_step(*this, log_a, end - log_a, g);
  }
  const double scale = growing_scale(background_, a), q = a / scale;
  return {.d1 = scale * g[0], .f1 = q + g[1] / g[0], .d2 = scale * scale * g[2], .f2 = 2 * q + g[3] / g[2]};
}

Growth Cosmology::growth(double a) const {
  Growth growth = unnormalised_growth(a);
  growth.d1 /= d1_today_;
  growth.d2 /= d1_today_ * d1_today_;
  return growth;
}

Timeline Timeline::comoving(const Background& background, const UnitSystem& units) {
  Timeline timeline;
  timeline.cosmology_.emplace(background, units);
  return timeline;
}

Timeline Timeline::newtonian() { return Timeline(); }

double Timeline::scale_factor(double t) const { return cosmology_ ? std::exp(t) : 1; }

double Timeline::kick_factor(double t0, double t1) const {
  return cosmology_ ? cosmology_->kick_factor(std::exp(t0), std::exp(t1)) : t1 - t0;
}

double Timeline::drift_factor(double t0, double t1) const {
  return cosmology_ ? cosmology_->drift_factor(std::exp(t0), std::exp(t1)) : t1 - t0;
}

double Timeline::growing_kick_factor(double t0, double t1, double at) const {
  return cosmology_ ? cosmology_->growing_kick_factor(std::exp(t0), std::exp(t1), std::exp(at)) : t1 - t0;
}

double Timeline::growing_drift_factor(double t0, double t1, double at) const {
  return cosmology_ ? cosmology_->growing_drift_factor(std::exp(t0), std::exp(t1), std::exp(at)) : t1 - t0;
}

double Timeline::physical_time(double t0, double t1) const {
  return cosmology_ ? cosmology_->time_between(std::exp(t0), std::exp(t1)) : t1 - t0;
}

double Timeline::hubble(double t) const { return cosmology_ ? cosmology_->hubble(std::exp(t)) : 0; }

const Cosmology& Timeline::cosmology() const {
  if (!cosmology_) throw std::logic_error("a newtonian timeline knows no cosmology");
  return *cosmology_;
}

}  // namespace maki
