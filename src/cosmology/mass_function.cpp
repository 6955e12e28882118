#include "src/cosmology/mass_function.hpp"

#include <cmath>
#include <numbers>
#include <utility>

namespace maki {

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
  constexpr double step = 0.05;  // in ln M; sigma is so smooth that its slope is right to 1e-4
  const double slope = std::log(sigma(mass * std::exp(-step)) / sigma(mass * std::exp(step))) / (2 * step);
  return tinker_multiplicity(sigma(mass), redshift_) * density_ / mass * slope;
}

}  // namespace maki
