// HALOFIT against two other programs, and its limits.
#include "src/cosmology/nonlinear.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

#include "tests/src/cosmology/planck.hpp"

namespace maki {
namespace {

using test::planck;

constexpr std::array kWaves = {0.01, 0.1, 0.3, 1.0, 3.0, 10.0};  // h/Mpc

// P of HALOFIT (Takahashi et al. 2012) over linear P for planck(), massless neutrinos, by wave number.
struct Reference {
  double redshift;
  std::array<double, kWaves.size()> hmf;   // hmf 3.5.2, linear P of Eisenstein & Hu
  std::array<double, kWaves.size()> camb;  // CAMB 2.0.5, its own linear P
};
constexpr Reference kReferences[] = {
    {0,
     {0.993444, 1.012481, 1.549620, 6.04082, 19.9956, 41.8585},
     {0.993379, 1.012368, 1.536636, 5.95914, 20.1762, 42.8566}},
    {1,
     {0.997505, 1.004474, 1.226858, 3.23806, 11.4849, 29.2399},
     {0.997465, 1.009995, 1.238522, 3.26228, 11.6439, 29.5314}},
    {3,
     {0.999470, 1.005817, 1.071389, 1.57014, 4.19538, 16.2527},
     {0.999472, 1.007761, 1.079799, 1.60231, 4.35399, 16.8141}},
};

TEST(Halofit, FollowsOtherPrograms) {
  const Cosmology cosmology(planck(), UnitSystem{});
  const PowerSpectrum linear({}, planck(), UnitSystem{});
  for (const Reference& at : kReferences) {
    const double a = 1 / (1 + at.redshift), growth = cosmology.growth(a).d1;
    const HalofitPower power(linear, cosmology, a);
    for (std::size_t i = 0; i < kWaves.size(); ++i) {
      const double ratio = power(kWaves[i]) / (growth * growth * linear(kWaves[i]));
      EXPECT_NEAR(ratio / at.hmf[i], 1, 0.01) << "z = " << at.redshift << ", k = " << kWaves[i];
      EXPECT_NEAR(ratio / at.camb[i], 1, 0.04) << "z = " << at.redshift << ", k = " << kWaves[i];
    }
  }
}

// sigma^2(R) of P = A k^n is A Gamma((n + 3) / 2) / (4 pi^2 R^(n + 3)): n_eff is n, and C is 0.
TEST(Halofit, KnowsTheScaleOfPowerLaws) {
  constexpr double amplitude = 30;
  for (const double n : {-2.5, -1.5, 0.0}) {
    const auto scale = nonlinear_scale([n](double k) { return amplitude * std::pow(k, n); }, 1e-3, 1e3);
    ASSERT_TRUE(scale);
    const double at_one = amplitude * std::tgamma((n + 3) / 2) / (4 * std::numbers::pi * std::numbers::pi);
    EXPECT_NEAR(scale->radius / std::pow(at_one, 1 / (n + 3)), 1, 1e-6) << n;
    EXPECT_NEAR(scale->slope, n, 1e-6);
    EXPECT_NEAR(scale->curvature, 0, 1e-6);
  }
}

TEST(Halofit, IsLinearWhereNothingHasClustered) {
  const Cosmology cosmology(planck(), UnitSystem{});
  const PowerSpectrum linear({}, planck(), UnitSystem{});
  const HalofitPower power(linear, cosmology, 1.0 / 50);
  const double growth = cosmology.growth(1.0 / 50).d1;
  for (const double k : {0.01, 1.0, 100.0}) EXPECT_DOUBLE_EQ(power(k), growth * growth * linear(k));
}

TEST(Halofit, HasTheUnitsOfItsSpectrum) {
  UnitSystem kpc;
  kpc.length_cgs /= 1000;
  const HalofitPower in_mpc(PowerSpectrum({}, planck(), UnitSystem{}), Cosmology(planck(), UnitSystem{}), 1);
  const HalofitPower in_kpc(PowerSpectrum({}, planck(), kpc), Cosmology(planck(), kpc), 1);
  for (const double k : {0.1, 1.0}) EXPECT_NEAR(in_kpc(k / 1000) / 1e9 / in_mpc(k), 1, 1e-9);
}

}  // namespace
}  // namespace maki
