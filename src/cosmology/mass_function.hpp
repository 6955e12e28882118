// The abundance of haloes by mass, from the linear power spectrum.
#pragma once

#include "src/cosmology/cosmology.hpp"
#include "src/cosmology/power.hpp"

namespace maki {

// The universal function of Tinker et al. 2008, ApJ 688, 709, for masses within spheres of 200 times the mean density:
// f(sigma) = A ((sigma / b)^-a + 1) exp(-c / sigma^2) (their eq. 3), with the parameters of their Table 2 and the
// redshift dependence of their eqs. 5 to 8. Fitted for 0.4 < sigma < 4 and z < 2.5, to 5 % at z = 0.
double tinker_multiplicity(double sigma, double redshift);

// Haloes at scale factor a in comoving volume, dn / d ln M = f(sigma) rho / M  d ln(1/sigma) / d ln M (their eq. 2).
// Masses in mass units, sigma in spheres that hold the mass at the mean density; the fit is for 200 times that.
class MassFunction {
 public:
  MassFunction(PowerSpectrum power, const Cosmology& cosmology, double scale_factor);

  double sigma(double mass) const;       // rms linear contrast at the scale factor
  double operator()(double mass) const;  // dn / d ln M, 1 / length^3

 private:
  PowerSpectrum power_;
  double density_, growth_, redshift_;
};

}  // namespace maki
