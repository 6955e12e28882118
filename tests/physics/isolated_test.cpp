// Isolated systems with known behaviour: quick versions. isolated_full_test.cpp holds the long ones.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/physics/isolated_runs.hpp"

namespace maki {
namespace {

TEST(Isolated, KeplerOrbitForTenPeriods) {
  const OrbitErrors errors = kepler_orbit(10, 1000);
  EXPECT_NEAR(errors.steps, 1000, 10);
  EXPECT_LE(errors.energy, 5e-5);
  EXPECT_LE(std::fabs(errors.phase), 0.005);
}

TEST(Isolated, PlummerSphereStaysInEquilibrium) {
  const EquilibriumErrors errors = plummer_sphere(2048, 3);
  EXPECT_LE(errors.energy, 1e-3);
  EXPECT_LE(errors.half_mass_radius, 0.05);
  EXPECT_LE(errors.momentum, 1e-4);
}

TEST(Isolated, ColdCollapseKeepsItsEnergy) { EXPECT_LE(cold_collapse(1024), 5e-3); }

}  // namespace
}  // namespace maki
