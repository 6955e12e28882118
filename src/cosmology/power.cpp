#include "src/cosmology/power.hpp"

#include <math.h>  // Boost 1.74 (makima) calls isnan without a namespace

#include <algorithm>
#include <boost/math/interpolators/makima.hpp>
#include <boost/math/quadrature/gauss.hpp>

#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <numbers>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/error.hpp"

namespace maki {

namespace {

constexpr double kTheta = kCmbTemperature / 2.7;

// Eq. 15.
double growth_suppression(double y) {
  const double r = std::sqrt(1 + y);
  return y * (-6 * r + (2 + 3 * y) * std::log((r + 1) / (r - 1)));
}

}  // namespace

EisensteinHuTransfer::EisensteinHuTransfer(const CosmologyParameters& p) : hubble_(p.hubble) {
  const double theta4 = std::pow(kTheta, 4);
  const double om = p.omega0 * p.hubble * p.hubble;
  const double ob = p.omega_baryon * p.hubble * p.hubble;
  const double fb = p.omega_baryon / p.omega0, fc = 1 - fb;
  baryon_fraction_ = fb;

  const double z_eq = 2.50e4 * om / theta4;                                            // eq. 2
  equality_ = 7.46e-2 * om / (kTheta * kTheta);                                        // eq. 3
  const double d1 = 0.313 * std::pow(om, -0.419) * (1 + 0.607 * std::pow(om, 0.674));  // eq. 4
  const double d2 = 0.238 * std::pow(om, 0.223);
  const double z_drag = 1291 * std::pow(om, 0.251) / (1 + 0.659 * std::pow(om, 0.828)) * (1 + d1 * std::pow(ob, d2));
  const double r_eq = 31.5 * ob / theta4 * 1e3 / z_eq, r_drag = 31.5 * ob / theta4 * 1e3 / z_drag;  // eq. 5
  const double horizon = 2 / (3 * equality_);
  // Eq. 6. Without baryons its limit is sqrt(6/R) (sqrt(R_drag + R_eq) - sqrt(R_eq)); the oscillations then vanish.
  sound_horizon_ = fb > 0 ? horizon * std::sqrt(6 / r_eq) *
                                std::log((std::sqrt(1 + r_drag) + std::sqrt(r_drag + r_eq)) / (1 + std::sqrt(r_eq)))
                          : horizon * std::sqrt(6.0) * (std::sqrt(1 + z_eq / z_drag) - 1);
  silk_ = 1.6 * std::pow(ob, 0.52) * std::pow(om, 0.73) * (1 + std::pow(10.4 * om, -0.95));  // eq. 7

  const double a1 = std::pow(46.9 * om, 0.670) * (1 + std::pow(32.1 * om, -0.532));  // eq. 11
  const double a2 = std::pow(12.0 * om, 0.424) * (1 + std::pow(45.0 * om, -0.582));
  alpha_c_ = std::pow(a1, -fb) * std::pow(a2, -fb * fb * fb);
  const double b1 = 0.944 / (1 + std::pow(458 * om, -0.708));  // eq. 12
  const double b2 = std::pow(0.395 * om, -0.0266);
  beta_c_ = 1 / (1 + b1 * (std::pow(fc, b2) - 1));

  alpha_b_ = 2.07 * equality_ * sound_horizon_ * std::pow(1 + r_drag, -0.75) *
             growth_suppression((1 + z_eq) / (1 + z_drag));                   // eq. 14
  beta_node_ = 8.41 * std::pow(om, 0.435);                                    // eq. 23
  beta_b_ = 0.5 + fb + (3 - 2 * fb) * std::sqrt(std::pow(17.2 * om, 2) + 1);  // eq. 24
}

// Eqs. 19 and 20.
double EisensteinHuTransfer::pressureless(double q, double alpha, double beta) const {
  const double c = 14.2 / alpha + 386 / (1 + 69.9 * std::pow(q, 1.08));
  const double l = std::log(std::numbers::e + 1.8 * beta * q);
  return l / (l + c * q * q);
}

// Eqs. 17 and 18.
double EisensteinHuTransfer::cold_matter(double k, double q) const {
  const double f = 1 / (1 + std::pow(k * sound_horizon_ / 5.4, 4));
  return f * pressureless(q, 1, beta_c_) + (1 - f) * pressureless(q, alpha_c_, beta_c_);
}

// Eqs. 21 and 22.
double EisensteinHuTransfer::baryons(double k, double q) const {
  const double ks = k * sound_horizon_;
  const double shifted = ks / std::cbrt(1 + std::pow(beta_node_ / ks, 3));
  const double j0 = shifted < 1e-4 ? 1 - shifted * shifted / 6 : std::sin(shifted) / shifted;
  const double envelope = alpha_b_ / (1 + std::pow(beta_b_ / ks, 3)) * std::exp(-std::pow(k / silk_, 1.4));
  return (pressureless(q, 1, 1) / (1 + std::pow(ks / 5.2, 2)) + envelope) * j0;
}

double EisensteinHuTransfer::operator()(double k) const {
  const double per_mpc = k * hubble_;
  const double q = per_mpc / (13.41 * equality_);  // eq. 10
  const double cold = (1 - baryon_fraction_) * cold_matter(per_mpc, q);
  return baryon_fraction_ > 0 ? baryon_fraction_ * baryons(per_mpc, q) + cold : cold;
}

NoWiggleTransfer::NoWiggleTransfer(const CosmologyParameters& p)
    : shape_(p.omega0 * p.hubble), theta2_(kTheta * kTheta) {
  const double om = p.omega0 * p.hubble * p.hubble;
  const double ob = p.omega_baryon * p.hubble * p.hubble;
  const double fb = p.omega_baryon / p.omega0;
  sound_horizon_ = p.hubble * 44.5 * std::log(9.83 / om) / std::sqrt(1 + 10 * std::pow(ob, 0.75));  // eq. 26
  alpha_ = 1 - 0.328 * std::log(431 * om) * fb + 0.38 * std::log(22.3 * om) * fb * fb;              // eq. 31
}

double NoWiggleTransfer::operator()(double k) const {
  const double gamma = shape_ * (alpha_ + (1 - alpha_) / (1 + std::pow(0.43 * k * sound_horizon_, 4)));  // eq. 30
  const double q = k * theta2_ / gamma;                                                                  // eq. 28
  const double l = std::log(2 * std::numbers::e + 1.8 * q);                                              // eq. 29
  return l / (l + (14.2 + 731 / (1 + 62.5 * q)) * q * q);
}

namespace {

// T(k) of Eisenstein and Hu is 1 below kTransferLow, and k^-2 up to a logarithm above kTransferHigh; h/Mpc.
constexpr double kTransferLow = 1e-8, kTransferHigh = 1e6;

// ln P against ln k, modified Akima curve between the points, straight beyond them.
class LogTable {
 public:
  LogTable(std::vector<double> log_k, std::vector<double> log_p)
      : first_k_(log_k.front()), last_k_(log_k.back()), first_p_(log_p.front()), last_p_(log_p.back()) {
    const std::size_t n = log_k.size();
    first_slope_ = (log_p[1] - log_p[0]) / (log_k[1] - log_k[0]);
    last_slope_ = (log_p[n - 1] - log_p[n - 2]) / (log_k[n - 1] - log_k[n - 2]);
    inside_ = std::make_shared<Curve>(std::move(log_k), std::move(log_p));
  }

  double operator()(double k) const {
    const double x = std::log(k);
    if (x <= first_k_) return std::exp(first_p_ + first_slope_ * (x - first_k_));
    if (x >= last_k_) return std::exp(last_p_ + last_slope_ * (x - last_k_));
    return std::exp((*inside_)(x));
  }

 private:
  using Curve = boost::math::interpolators::makima<std::vector<double>>;
  std::shared_ptr<const Curve> inside_;
  double first_k_, last_k_, first_p_, last_p_, first_slope_, last_slope_;
};

std::vector<std::pair<double, double>> read_columns(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw Error("Cannot read the power spectrum " + file, "the file cannot be opened", "check its name");
  std::vector<std::pair<double, double>> rows;
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::istringstream fields(line);
    double k = 0, p = 0;
    const auto numbers = std::distance(std::istream_iterator<std::string>(fields), {});
    if (numbers >= 7)
      throw Error("Cannot use the power spectrum " + file,
                  "line " + std::to_string(number) + " has " + std::to_string(numbers) +
                      " numbers: a table of transfer functions, as CAMB's, is no spectrum",
                  "give k in h/Mpc and P in (Mpc/h)^3 (CAMB: its matter power)");
    fields = std::istringstream(line);
    const bool read = static_cast<bool>(fields >> k >> p);
    const bool whole = fields.eof() || std::isspace(fields.peek());  // not so of 1.5D+03
    if (!read || !whole || !(k > 0) || !(p > 0) || !std::isfinite(k) || !std::isfinite(p)) {
      throw Error("Cannot use the power spectrum " + file,
                  "line " + std::to_string(number) + " is not two positive numbers",
                  "give k in h/Mpc and P in (Mpc/h)^3, as 1.5e3, with # before comments");
    }
    rows.emplace_back(k, p);
  }
  return rows;
}

PowerShape shape_from_table(const std::string& file) {
  auto rows = read_columns(file);
  std::sort(rows.begin(), rows.end());
  std::vector<double> log_k, log_p;
  for (const auto& [k, p] : rows) {
    if (!log_k.empty() && std::log(k) <= log_k.back()) {
      throw Error("Cannot use the power spectrum " + file, "k = " + std::to_string(k) + " occurs twice",
                  "keep one spectrum in the file");
    }
    log_k.push_back(std::log(k));
    log_p.push_back(std::log(p));
  }
  if (rows.size() < 8 || rows.front().first > 0.02 || rows.back().first < 2) {
    throw Error("Cannot use the power spectrum " + file, "it does not cover k = 0.02 to 2 h/Mpc with 8 points or more",
                "write a wider table");
  }
  const double low = rows.front().first, high = rows.back().first;
  return {LogTable(std::move(log_k), std::move(log_p)), low, high};
}

template <class Transfer>
PowerShape shape_from_transfer(const CosmologyParameters& parameters) {
  const auto shape = [transfer = Transfer(parameters), n = parameters.n_s](double k) {
    const double t = transfer(k);
    return std::pow(k, n) * t * t;
  };
  return {shape, kTransferLow, kTransferHigh};
}

PowerShape make_shape(const PowerOptions& options, const CosmologyParameters& parameters) {
  switch (options.model) {
    case PowerModel::kTable: return shape_from_table(options.table_file);
    case PowerModel::kPowerLaw:
      if (!(options.power_law_index > -3 && options.power_law_index < 1)) {
        throw Error("The power law has no finite sigma8", "its index is " + std::to_string(options.power_law_index),
                    "choose one between -3 and 1");
      }
      return {[n = options.power_law_index](double k) { return std::pow(k, n); }, 1, 1};
    default: break;
  }
  if (!(parameters.omega_baryon >= 0 && parameters.omega_baryon < parameters.omega0)) {
    throw Error("The Eisenstein-Hu spectrum has no meaning here",
                "OmegaBaryon is " + std::to_string(parameters.omega_baryon) + ", Omega0 is " +
                    std::to_string(parameters.omega0),
                "keep OmegaBaryon between 0 and Omega0");
  }
  return options.model == PowerModel::kEisensteinHu ? shape_from_transfer<EisensteinHuTransfer>(parameters)
                                                    : shape_from_transfer<NoWiggleTransfer>(parameters);
}

double top_hat(double x) {
  if (x < 0.02) return 1 - x * x / 10 + x * x * x * x / 280;
  return 3 * (std::sin(x) - x * std::cos(x)) / (x * x * x);
}

// d ln P/d ln k from k to e k.
double slope(const PowerShape& shape, double k) { return std::log(shape.at(std::numbers::e * k) / shape.at(k)); }

// Variance in spheres: int dlnk k^3 P W^2 / (2 pi^2), in x = k R. Panels follow the oscillations of W up to x = 100 pi;
// beyond, W^2 is replaced by its mean, 9/(2 x^4). Below the first panel W is 1 and P a power law, and above the last
// one P is a power law: both parts are added in closed form, and may be nearly all of the variance where P is close to
// k^-3 or to k.
double variance(const PowerShape& shape, double radius) {
  using Rule = boost::math::quadrature::gauss<double, 15>;
  const double low = std::min(shape.low, 1e-7 / radius), high = std::max(shape.high, 100 * std::numbers::pi / radius);
  const double low_slope = slope(shape, low / std::numbers::e), high_slope = slope(shape, high);
  if (!(low_slope > -3 && high_slope < 1)) {
    throw Error("The power spectrum has no finite sigma8",
                "it begins as k^" + std::to_string(low_slope) + " and ends as k^" + std::to_string(high_slope),
                "use one that begins with a power above -3 and ends with one below 1");
  }
  const double begin = std::log(low * radius), split = std::log(100 * std::numbers::pi), end = std::log(high * radius);
  const auto cubed = [&](double x) { return std::pow(x / radius, 3) * shape.at(x / radius); };
  const auto with_window = [&](double log_x) {
    const double x = std::exp(log_x);
    return cubed(x) * top_hat(x) * top_hat(x);
  };
  const auto with_mean = [&](double log_x) {
    const double x = std::exp(log_x);
    return cubed(x) * 4.5 / (x * x * x * x);
  };
  double sum = with_window(begin) / (low_slope + 3);
  for (double left = begin; left < split;) {
    const double right = std::min(split, left + std::min(0.1, std::numbers::pi * std::exp(-left)));
    sum += Rule::integrate(with_window, left, right);
    left = right;
  }
  for (double left = split; left < end; left += 0.25) {
    sum += Rule::integrate(with_mean, left, std::min(end, left + 0.25));
  }
  sum += with_mean(end) / (1 - high_slope);
  return sum / (2 * std::numbers::pi * std::numbers::pi);
}

}  // namespace

PowerSpectrum::PowerSpectrum(const PowerOptions& options, const CosmologyParameters& parameters,
                             const UnitSystem& units)
    : shape_(make_shape(options, parameters)), length_unit_(length_unit_in_mpc_h(units, parameters.hubble)),
      is_table_(options.model == PowerModel::kTable) {
  const bool as_it_stands = parameters.sigma8 == 0 && options.model == PowerModel::kTable;
  if (!as_it_stands && !(parameters.sigma8 > 0)) {
    throw Error("The power spectrum has no amplitude", "sigma8 is " + std::to_string(parameters.sigma8),
                "give a positive value");
  }
  if (!as_it_stands && options.table_redshift != 0) {
    throw Error("The power spectrum has two amplitudes",
                "a table's redshift is given beside sigma8, which is that of z = 0",
                "set sigma8 to 0 to take the table as it stands at its redshift");
  }
  if (as_it_stands) {
    const double growth = Cosmology(parameters, units).growth(1 / (1 + options.table_redshift)).d1;
    amplitude_ = 1 / (growth * growth);
  } else {
    amplitude_ = parameters.sigma8 * parameters.sigma8 / variance(shape_, 8);
  }
}

double PowerSpectrum::operator()(double k) const {
  return amplitude_ * shape_.at(k / length_unit_) / (length_unit_ * length_unit_ * length_unit_);
}

std::optional<std::pair<double, double>> PowerSpectrum::table_range() const {
  if (!is_table_) return {};
  return std::pair{shape_.low * length_unit_, shape_.high * length_unit_};
}

double PowerSpectrum::sigma(double radius) const {
  return std::sqrt(amplitude_ * variance(shape_, radius * length_unit_));
}

}  // namespace maki
