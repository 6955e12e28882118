#include "src/cosmology/mass_function.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace maki {
namespace {

TEST(MassFunction, TinkersParameters) {
  // By hand from their Table 2: 0.186 ((1 / 2.57)^-1.47 + 1) exp(-1.19).
  EXPECT_NEAR(tinker_multiplicity(1, 0), 0.186 * (4.00499 + 1) * 0.304221, 1e-6);
  EXPECT_NEAR(tinker_multiplicity(0.5, 0), 0.186 * (std::pow(0.5 / 2.57, -1.47) + 1) * std::exp(-4.76), 1e-12);
  // At z = 1: A 2^-0.14, a 2^-0.06, b 2^-0.010673.
  const double a = 1.47 * 0.959264, b = 2.57 * 0.992629;
  EXPECT_NEAR(tinker_multiplicity(2, 1), 0.186 * 0.907519 * (std::pow(2 / b, -a) + 1) * std::exp(-1.19 / 4), 2e-6);
}

TEST(MassFunction, OfAPowerLaw) {
  const CosmologyParameters parameters;
  const UnitSystem units;
  const Cosmology cosmology(parameters, units);
  const PowerSpectrum power({.model = PowerModel::kPowerLaw, .power_law_index = -1.5}, parameters, units);
  const double eight = 4 * std::numbers::pi / 3 * 512 * cosmology.mean_density();  // of 8 Mpc/h
  for (const double a : {1.0, 0.4}) {
    const MassFunction function(power, cosmology, a);
    const double growth = cosmology.growth(a).d1;
    EXPECT_NEAR(function.sigma(eight), parameters.sigma8 * growth, 1e-6);
    for (const double mass : {1e2, 1e4}) {
      const double sigma = parameters.sigma8 * growth * std::pow(mass / eight, -0.25);
      EXPECT_NEAR(function.sigma(mass), sigma, 1e-4 * sigma);
      const double expected = tinker_multiplicity(sigma, 1 / a - 1) * cosmology.mean_density() / mass * 0.25;
      EXPECT_NEAR(function(mass), expected, 2e-3 * expected);
    }
  }
}

// Clusters above 1e14 solar masses/h at z = 0: some 2e-5 in a cubic Mpc/h in the universe of Planck.
TEST(MassFunction, OfOurUniverse) {
  const CosmologyParameters parameters;
  const Cosmology cosmology(parameters, {});
  const PowerSpectrum power({}, parameters, {});
  const MassFunction function(power, cosmology, 1);
  double number = 0;
  for (double log_mass = 14.025; log_mass < 16; log_mass += 0.05)
    number += function(std::pow(10, log_mass - 10)) * 0.05 * std::numbers::ln10;
  EXPECT_GT(number, 1.5e-5);
  EXPECT_LT(number, 4e-5);
}

}  // namespace
}  // namespace maki
