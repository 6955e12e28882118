// Isolated systems at full length.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/physics/isolated_runs.hpp"

namespace maki {
namespace {

TEST(FullIsolated, KeplerOrbitForAHundredPeriods) {
  const OrbitErrors errors = kepler_orbit(100, 1000);
  std::printf("Kepler, e = 0.5, 100 periods of %.0f steps: |dE/E| %.2e, phase %.4f rad\n", errors.steps, errors.energy,
              errors.phase);
  EXPECT_NEAR(errors.steps, 1000, 5);
  EXPECT_LE(errors.energy, 1e-4);
  EXPECT_LE(std::fabs(errors.phase), 0.05);
}

TEST(FullIsolated, PlummerSphereStaysInEquilibriumForTwentyCrossingTimes) {
  const EquilibriumErrors errors = plummer_sphere(8192, 20);
  std::printf(
      "Plummer sphere, N = 8192, 20 crossing times: |dE/E| %.2e, radii of 10 %% and 50 %% of the mass "
      "change by %.3f and %.3f, |sum m a|/sum m|a| %.1e\n",
      errors.energy, errors.inner_radius, errors.half_mass_radius, errors.momentum);
  EXPECT_LE(errors.energy, 1e-3);
  EXPECT_LE(errors.half_mass_radius, 0.05);
  EXPECT_LE(errors.inner_radius, 0.05);
  EXPECT_LE(errors.momentum, 1e-4);
}

TEST(FullIsolated, ColdCollapseKeepsItsEnergy) {
  const double error = cold_collapse(32768);
  std::printf("Cold collapse, N = 32768, to t = 7: |dE/E| %.2e\n", error);
  EXPECT_LE(error, 5e-3);
}

}  // namespace
}  // namespace maki
