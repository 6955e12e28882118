// The power spectrum of matter that has clustered, from the linear one.
#pragma once

#include <functional>
#include <optional>

#include "src/cosmology/cosmology.hpp"
#include "src/cosmology/power.hpp"

namespace maki {

// Where a linear spectrum becomes non-linear (Smith et al. 2003, MNRAS 341, 1311; Takahashi et al. 2012, eqs. A4 and A5): the
// radius of the Gaussian window with sigma^2(R) = int dlnk Delta^2(k) exp(-k^2 R^2) = 1, and there
// n_eff = -3 - dln sigma^2/dlnR and C = -d^2ln sigma^2/dlnR^2.
struct NonlinearScale {
  double radius = 0;  // length units
  double slope = 0;   // n_eff
  double curvature = 0;
};
// Of a spectrum P(k) in length^3 of 1/length; none where sigma^2 = 1 lies outside of radii from `least` to `most`.
std::optional<NonlinearScale> nonlinear_scale(const std::function<double(double)>& linear, double least, double most);

// HALOFIT with the coefficients of Takahashi et al. 2012, ApJ 761, 152 (their eqs. A1 to A14), for a cosmological constant.
// Fitted to simulations of flat universes near WMAP's at z = 0 to 10: to 5 % up to k = 1 h/Mpc and 10 % up to 10 h/Mpc for
// z up to 3. At times so early that sigma = 1 lies below 1 kpc/h it is the linear spectrum.
class HalofitPower {
 public:
  // `power` grown to a scale factor of `cosmology`, whose units are those of the spectrum.
  HalofitPower(const PowerSpectrum& power, const Cosmology& cosmology, double scale_factor);
  // P in length^3 of k in 1/length.
  double operator()(double k) const;

 private:
  // By their names in eqs. A1 to A3; f1 to f3 are powers of Omega_m(a), and mu_n is 0.
  struct Coefficients {
    double a, b, c, gamma, alpha, beta, nu, f1, f2, f3;
  };
  static Coefficients coefficients(const NonlinearScale& scale, double omega_matter);

  std::function<double(double)> linear_;
  std::optional<NonlinearScale> scale_;
  Coefficients fit_{};
};

}  // namespace maki
