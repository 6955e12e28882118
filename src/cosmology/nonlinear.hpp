// Non-linear theory from a linear power spectrum: the spectrum of clustered matter, the halo mass function, and the
// bispectrum at tree level.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "src/cosmology/cosmology.hpp"
#include "src/cosmology/power.hpp"

namespace maki {

// The scale at which a linear spectrum becomes non-linear (Smith et al. 2003, MNRAS 341, 1311; Takahashi et al. 2012,
// eqs. A4 and A5): the radius of the Gaussian window with sigma^2(R) = int dlnk Delta^2(k) exp(-k^2 R^2) = 1, and there
// n_eff = -3 - dln sigma^2/dlnR and C = -d^2ln sigma^2/dlnR^2.
struct NonlinearScale {
  double radius = 0;  // length units
  double slope = 0;   // n_eff
  double curvature = 0;
};
// `linear`: P in length^3 of k in 1/length. None where sigma^2 = 1 lies outside of radii from `least` to `most`.
std::optional<NonlinearScale> nonlinear_scale(const std::function<double(double)>& linear, double least, double most);

// HALOFIT (Smith et al. 2003, MNRAS 341, 1311) with the coefficients of Takahashi et al. 2012, ApJ 761, 152 (their eqs.
// A1 to A14), for dark energy of any w(a). In curved universes its powers of Omega_m are interpolated by Omega_Lambda /
// (1 - Omega_m) between those of flat universes and of open ones without a constant. Fitted to simulations of flat
// universes near WMAP's at z = 0 to 10: to 5 % up to k = 1 h/Mpc and 10 % up to 10 h/Mpc for z up to 3. At early times,
// with sigma = 1 below 1 kpc/h, it is the linear spectrum.
class HalofitPower {
 public:
  // `power` grown to a scale factor of `cosmology`, whose units are those of the spectrum.
  HalofitPower(const PowerSpectrum& power, const Cosmology& cosmology, double scale_factor);
  // P in length^3 of k in 1/length.
  double operator()(double k) const;

 private:
  // Names as in eqs. A1 to A3; f1 to f3 are powers of Omega_m(a), and mu_n is 0. `dark` is Omega_w(a) (1 + w(a)).
  struct Coefficients {
    double a, b, c, gamma, alpha, beta, nu, f1, f2, f3;
  };
  static Coefficients coefficients(const NonlinearScale& scale, double omega_matter, double flat, double dark);

  std::function<double(double)> linear_;
  std::optional<NonlinearScale> scale_;
  Coefficients fit_{};
};

// The universal function of Tinker et al. 2008, ApJ 688, 709, for masses within spheres of 200 times the mean density:
// f(sigma) = A ((sigma / b)^-a + 1) exp(-c / sigma^2) (their eq. 3), with the parameters of their Table 2 and the
// redshift dependence of their eqs. 5 to 8. Fitted for 0.4 < sigma < 4 and z < 2.5, to 5 % at z = 0.
double tinker_multiplicity(double sigma, double redshift);

// Halo mass function at scale factor a in comoving volume, dn / d ln M = f(sigma) rho / M  d ln(1/sigma) / d ln M
// (their eq. 2). Masses in mass units; sigma in spheres with that mass at the mean density. The fit is for spheres of
// 200 times the mean density.
class MassFunction {
 public:
  MassFunction(PowerSpectrum power, const Cosmology& cosmology, double scale_factor);

  double sigma(double mass) const;       // rms linear contrast at the scale factor
  double operator()(double mass) const;  // dn / d ln M, 1 / length^3

 private:
  PowerSpectrum power_;
  double density_, growth_, redshift_;
};

// The bispectrum of matter at tree level: second-order perturbation theory of Gaussian initial conditions.

// 2 F2(k1, k2) P(k1) P(k2) and the two other pairs, with F2 = 5/7 + mu (k1/k2 + k2/k1)/2 + 2/7 mu^2 (Fry 1984, ApJ 279,
// 499; Bernardeau et al. 2002, Phys. Rep. 367, 1, eq. 45 for F2), for the sides of a triangle. F2 is that of an
// Einstein-de Sitter universe, within 1 % of that of others. `powers` are those of linear theory at the sides.
double tree_bispectrum(const std::array<double, 3>& sides, const std::array<double, 3>& powers);

// Wave numbers from `begin` to `end`.
struct WaveShell {
  double begin, end;
};
// The mean over the triangles with one side in each shell, with modes spaced by `wave` = 2 pi / side of the box. Where
// all shells end below 10 waves: over the triangles of the lattice. Else over sampled sides k1, k2, k3, weighted by the
// number of such triangles, proportional to N1 N2 N3 / (k1 k2 k3) with Ni modes of length ki.
double mean_tree_bispectrum(const std::function<double(double)>& power, const std::array<WaveShell, 3>& shells,
                            double wave);

}  // namespace maki
