#include "src/cosmology/transfer.hpp"

#include <cmath>
#include <numbers>

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
  // Eq. 6. Without baryons its limit is sqrt(6/R) (sqrt(R_drag + R_eq) - sqrt(R_eq)); the oscillations are then nil.
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

}  // namespace maki
