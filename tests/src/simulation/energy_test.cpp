#include "src/simulation/totals.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace maki {
namespace {

TEST(EnergyTracker, IsolatedErrorIsTheChangeOverTheStart) {
  EnergyTracker tracker(false);
  EXPECT_EQ(tracker.add(1, 0.25, -0.5).error, 0);
  EXPECT_NEAR(tracker.add(1, 0.3, -0.5).error, 0.2, 1e-12);
  tracker.remove(0.05);  // left with an escaper
  EXPECT_NEAR(tracker.add(1, 0.25, -0.5).error, 0.2, 1e-12);
}

TEST(EnergyTracker, IsolatedWithoutEnergyIsMeasuredAgainstThePotential) {
  EnergyTracker tracker(false);
  tracker.add(1, 0.5, -0.5);
  EXPECT_NEAR(tracker.add(1, 0.6, -0.5).error, 0.2, 1e-12);
}

// Linear growth in an Einstein-de Sitter universe: T ~ a and W = -3/2 T obey d(a(T+W)) = -T da.
TEST(EnergyTracker, LinearGrowthKeepsTheLayzerIrvineIntegral) {
  EnergyTracker tracker(true);
  const auto kinetic = [](double a) { return 7 * a; };
  EnergyReport report = tracker.add(0.02, kinetic(0.02), -1.5 * kinetic(0.02) + 0);
  EXPECT_EQ(report.error, 0);
  for (double a = 0.02; a < 1; a *= 1.04) tracker.add_kinetic(a, kinetic(a));
  // a (T + W) = -T a / 2 = -3.5 a^2; int T da = 3.5 a^2
  report = tracker.add(1, kinetic(1), -1.5 * kinetic(1));
  EXPECT_NEAR(report.integral, 3.5 * (1 - 0.02 * 0.02), 1e-9);
  EXPECT_NEAR(report.error, 0, 1e-9);
  EXPECT_NEAR(tracker.add(1, kinetic(1) * 1.1, -1.5 * kinetic(1)).error, 0.1 / 1.5, 1e-9);
}

}  // namespace
}  // namespace maki
