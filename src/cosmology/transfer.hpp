// Transfer functions of cold dark matter with baryons: the fits of Eisenstein & Hu 1998, ApJ 496, 605.
#pragma once

#include "src/cosmology/cosmology.hpp"

namespace maki {

inline constexpr double kCmbTemperature = 2.7255;  // K

// T(k), 1 as k -> 0; k in h/Mpc. With the acoustic oscillations (their eqs. 2 to 24).
class EisensteinHuTransfer {
 public:
  explicit EisensteinHuTransfer(const CosmologyParameters& parameters);
  double operator()(double k) const;
  double sound_horizon() const { return sound_horizon_; }  // at the drag epoch, Mpc (no h)

 private:
  double pressureless(double q, double alpha, double beta) const;
  double cold_matter(double k, double q) const;
  double baryons(double k, double q) const;

  double hubble_, baryon_fraction_, equality_, sound_horizon_, silk_;  // wave numbers in 1/Mpc
  double alpha_c_, beta_c_, alpha_b_, beta_b_, beta_node_;
};

// The same without the oscillations (their eqs. 26 and 28 to 31).
class NoWiggleTransfer {
 public:
  explicit NoWiggleTransfer(const CosmologyParameters& parameters);
  double operator()(double k) const;

 private:
  double shape_, theta2_, sound_horizon_, alpha_;  // Omega0 h, (T/2.7 K)^2, Mpc/h
};

}  // namespace maki
