#include "src/gravity/reference/exact_sums.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace maki {
namespace {

TEST(DirectReference, TwoParticles) {
  const std::vector<Vector3> positions = {{0.4, 0.5, 0.5}, {0.4, 0.53, 0.54}};
  const std::vector<double> masses = {2, 3};
  const ReferenceForces f = direct_reference(positions, masses, {}, {Softening::kPlummer, 0.12});
  const double s = 0.13;  // hypot(0.05, 0.12)
  EXPECT_NEAR(f.acceleration[0][0], 0, 1e-15);
  EXPECT_NEAR(f.acceleration[0][1], 3 * 0.03 / (s * s * s), 1e-10);
  EXPECT_NEAR(f.acceleration[0][2], 3 * 0.04 / (s * s * s), 1e-10);
  EXPECT_NEAR(f.acceleration[1][2], -2 * 0.04 / (s * s * s), 1e-10);
  EXPECT_NEAR(f.potential[0], -3 / s, 1e-10);
  EXPECT_NEAR(f.potential[1], -2 / s, 1e-10);
}

// A shell attracts as if its mass were at the centre, and not at all inside.
TEST(DirectReference, NewtonsShellTheorem) {
  std::vector<Vector3> positions = {{0.5, 0.5, 0.62}, {0.52, 0.5, 0.51}};
  std::vector<double> masses = {0, 0};
  const int n = 40000;
  for (int i = 0; i < n; ++i) {  // Fibonacci sphere of radius 0.1
    const double z = 1 - (2 * i + 1.0) / n, angle = M_PI * (3 - std::sqrt(5.0)) * i, r = std::sqrt(1 - z * z);
    positions.push_back({0.5 + 0.1 * r * std::cos(angle), 0.5 + 0.1 * r * std::sin(angle), 0.5 + 0.1 * z});
    masses.push_back(1.0 / n);
  }
  const ReferenceForces f = direct_reference(positions, masses, {0, 1}, {Softening::kPlummer, 0});
  EXPECT_NEAR(f.acceleration[0][2] * 0.12 * 0.12, -1, 1e-4);
  EXPECT_NEAR(f.potential[0] * 0.12, -1, 1e-4);
  EXPECT_NEAR(f.acceleration[1][0] * 0.1 * 0.1, 0, 1e-4);
  EXPECT_NEAR(f.potential[1] * 0.1, -1, 1e-4);
}

TEST(DirectReference, SofteningVanishesFarOut) {
  for (const double r : {0.05, 0.1, 0.3}) {
    const PairValue spline = softened_newton(r * r, Softening::kSpline, 0.01);
    EXPECT_DOUBLE_EQ(spline.g, 1 / (r * r * r));
    EXPECT_DOUBLE_EQ(spline.p, 1 / r);
  }
}

// g = -p'/r in both pieces of the spline, and both softenings have the depth 1 / softening.
TEST(DirectReference, SoftenedPairIsConsistent) {
  for (const Softening kind : {Softening::kPlummer, Softening::kSpline}) {
    for (const double r : {0.001, 0.01, 0.0139, 0.0141, 0.02, 0.0279, 0.0281}) {
      const double h = 1e-6;
      const auto p = [&](double d) { return softened_newton(d * d, kind, 0.01).p; };
      const double slope = (p(r + h) - p(r - h)) / (2 * h);
      EXPECT_NEAR(softened_newton(r * r, kind, 0.01).g * r, -slope, 1e-3) << r;
    }
    EXPECT_NEAR(softened_newton(0, kind, 0.01).p, 100, 1e-9);
  }
}

}  // namespace
}  // namespace maki
