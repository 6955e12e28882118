// Expansion of the homogeneous universe and linear growth of perturbations in it; the integrator's time variable.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "src/io/snapshot.hpp"

namespace maki {

struct CosmologyParameters : Background {
  double sigma8 = 0.829;  // rms linear contrast in spheres of 8 Mpc/h at z = 0
  double n_s = 0.96;      // primordial spectral index
};

// Linear and second-order growing modes at one scale factor. d1 = 1 today; d2 goes with d1^2 and is -3/7 d1^2 in an
// Einstein-de Sitter universe. f1 and f2 are d ln|d| / d ln a.
struct Growth {
  double d1 = 1, f1 = 1, d2 = -3.0 / 7, f2 = 2;
};

// Times are in length/velocity units, rates in velocity/length; without h where the units carry 1/h.
class Cosmology {
 public:
  // Throws Error where omega0 or h is not positive, omega_radiation is negative, dark energy is not negligible early on
  // (w0 + wa > -1/3), or the universe bounces between a = 0 and a = 1.
  Cosmology(const Background& background, const UnitSystem& units);

  const Background& background() const { return background_; }
  const UnitSystem& units() const { return units_; }

  double expansion(double a) const { return background_.expansion(a); }  // E(a) = H(a)/H0
  // Throws Error where it does not expand all the way between these scale factors.
  void require_expansion(double first, double last) const;
  double hubble(double a) const;            // H(a) = (da/dt)/a
  double omega_matter(double a) const;      // Omega_m(a)
  double log_hubble_slope(double a) const;  // d ln H / d ln a

  double mean_density() const;  // comoving matter density, mass/length^3

  // Integrals over dt between two scale factors, relative accuracy 1e-11; antisymmetric in their arguments.
  double kick_factor(double from, double to) const;   // int dt/a
  double drift_factor(double from, double to) const;  // int dt/a^2
  double time_between(double from, double to) const;  // int dt

  // kick_factor() and drift_factor() for a comoving force and a canonical momentum that are known at `at` and grow as
  // in linear theory: the integrals of D(a)/D(at) dt/a, D = d1, and of P(a)/P(at) dt/a^2, P = a^2 H f1 d1. A leapfrog
  // with these factors follows the growing mode exactly, in steps of any length (Feng et al. 2016, MNRAS 463, 2273).
  // Where `at` is in the middle of the step, they differ from the plain factors in second order of the step.
  double growing_kick_factor(double from, double to, double at) const;
  double growing_drift_factor(double from, double to, double at) const;

  // Solves D'' + (2 + dlnH/dlna) D' = 3/2 Omega_m(a) D, and the same for d2 with the source -3/2 Omega_m(a) d1^2
  // (Bouchet et al. 1995, A&A 296, 575; primes are d/d ln a). Radiation and dark energy act by the expansion alone, so
  // that growth begins as Meszaros found for a smooth radiation (1974, A&A 37, 225), d1 ~ a + 2/3 a_eq. Relative
  // accuracy 1e-9 with a cosmological constant, 2e-8 of any w; of d2 3e-8.
  Growth growth(double a) const;

 private:
  void require_past() const;
  template <class Weight>
  double integrate_over_time(double from, double to, int power_of_a, const Weight& weight) const;
  Growth unnormalised_growth(double a) const;
  double growing_momentum(double a) const;

  Background background_;
  UnitSystem units_;
  double hubble0_ = 0;
  double growth_start_;  // scale factor
  // d1/s, d2/s^2 and their slopes in ln a, s = a + 2/3 a_eq, on a grid in ln a up to a = 1, so that growth() integrates
  // only one grid step.
  std::vector<std::array<double, 4>> growing_modes_;
  double d1_today_ = 1;
};

// A redshift to print: exactly 0 where it would be rounded to 0 or -0.
inline double shown_redshift(double z) { return z > -5e-5 && z < 5e-5 ? 0 : z; }

// The unit of length in Mpc/h.
double length_unit_in_mpc_h(const UnitSystem& units, double hubble);

// The integrator's time variable. Cosmological runs step in t = ln a, isolated runs in t = time; the same
// kick-drift-kick works on both, as it only needs the exact kick and drift factors.
class Timeline {
 public:
  // t = ln a. With canonical momenta p = a^2 dx/dt: dp/dt = -grad(phi)/a, dx/dt = p/a^2 (comoving x, phi).
  static Timeline comoving(const Background& background, const UnitSystem& units);
  // t = time in length/velocity units, a = 1 for ever.
  static Timeline newtonian();

  bool is_comoving() const { return cosmology_.has_value(); }

  double scale_factor(double t) const;              // exp(t), or 1
  double kick_factor(double t0, double t1) const;   // int dt/a, or t1 - t0
  double drift_factor(double t0, double t1) const;  // int dt/a^2, or t1 - t0
  // The factors for forces and momenta known at time `at` that grow as in linear theory
  // (Cosmology::growing_kick_factor); or t1 - t0.
  double growing_kick_factor(double t0, double t1, double at) const;
  double growing_drift_factor(double t0, double t1, double at) const;
  double physical_time(double t0, double t1) const;  // int dt, or t1 - t0; length/velocity units
  double hubble(double t) const;                     // (da/dt)/a in velocity/length, or 0

  // The cosmology behind a comoving timeline; throws std::logic_error in a newtonian run.
  const Cosmology& cosmology() const;

 private:
  Timeline() = default;
  std::optional<Cosmology> cosmology_;
};

}  // namespace maki
