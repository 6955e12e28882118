// The exact sums that tests measure by.
#include "src/gravity/reference/exact_sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace maki {
namespace {

TEST(DirectReference, TwoParticles) {
  const std::vector<Vector3> positions = {{0.4, 0.5, 0.5}, {0.4, 0.53, 0.54}};
  const std::vector<double> masses = {2, 3};
  const ReferenceForces f = direct_reference(positions, masses, positions, {Softening::kPlummer, 0.12});
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
  const ReferenceForces f = direct_reference(positions, masses, {positions[0], positions[1]}, {Softening::kPlummer, 0});
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

constexpr double kCubicLattice = 2.837297479480619;  // Nijboer & De Wette 1957: 1 / side for a simple cubic lattice
constexpr double kRockSalt = 1.747564594633182;      // Madelung's constant of NaCl

struct Set {
  std::vector<Vector3> positions;
  std::vector<double> masses;
};

Set random_set(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Set set;
  for (std::size_t i = 0; i < n; ++i) {
    set.positions.push_back({uniform(random), uniform(random), uniform(random)});
    set.masses.push_back(0.5 + uniform(random));
  }
  return set;
}

ReferenceForces ewald(const Set& set, double alpha = 11.2, double softening = 0, Softening kind = Softening::kPlummer) {
  return ewald_reference(set.positions, set.masses, set.positions, {kind, softening, alpha});
}

TEST(Ewald, LatticeConstantOfASingleParticle) {
  for (const double alpha : {3.0, 6.0, 11.2, 14.0}) {
    const ReferenceForces f = ewald({{{0.13, 0.92, 0.4}}, {2.0}}, alpha);
    EXPECT_NEAR(f.potential[0], 2 * kCubicLattice, 1e-10) << alpha;  // its images and the background
    for (int axis = 0; axis < 3; ++axis) EXPECT_NEAR(f.acceleration[0][axis], 0, 1e-12);
  }
}

TEST(Ewald, MadelungConstantOfRockSalt) {
  Set set;
  for (int i = 0; i < 8; ++i) {
    const int x = i & 1, y = i >> 1 & 1, z = i >> 2;
    set.positions.push_back({0.1 + 0.5 * x, 0.2 + 0.5 * y, 0.3 + 0.5 * z});
    set.masses.push_back((x + y + z) % 2 ? -1 : 1);
  }
  const ReferenceForces f = ewald(set);
  // Like "masses" attract: the potential of a positive one, surrounded by negative ones, is positive.
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(f.potential[i], set.masses[i] * kRockSalt / 0.5, 1e-10);
}

TEST(Ewald, SplittingParameterDoesNotMatter) {
  const Set set = random_set(40, 1);
  for (const double softening : {0.0, 0.01}) {
    const ReferenceForces a = ewald(set, 11.2, softening), b = ewald(set, 4.1, softening);
    const ReferenceForces c = ewald(set, 13.0, softening);
    for (std::size_t i = 0; i < set.positions.size(); ++i) {
      EXPECT_NEAR(a.potential[i], b.potential[i], 1e-9);
      EXPECT_NEAR(a.potential[i], c.potential[i], 1e-9);
      for (int axis = 0; axis < 3; ++axis) {
        EXPECT_NEAR(a.acceleration[i][axis], b.acceleration[i][axis], 1e-9);
        EXPECT_NEAR(a.acceleration[i][axis], c.acceleration[i][axis], 1e-9);
      }
    }
  }
}

TEST(Ewald, AccelerationIsMinusTheGradientOfThePotential) {
  Set set = random_set(20, 2);
  set.masses[0] = 0;  // a test particle: moving it does not change the others' field
  for (const Softening kind : {Softening::kPlummer, Softening::kSpline}) {
    const Vector3 a = ewald(set, 11.2, 0.05, kind).acceleration[0];
    for (int axis = 0; axis < 3; ++axis) {
      const double h = 1e-5;
      Set up = set, down = set;
      up.positions[0][axis] += h, down.positions[0][axis] -= h;
      const double above = ewald(up, 11.2, 0.05, kind).potential[0];
      const double below = ewald(down, 11.2, 0.05, kind).potential[0];
      EXPECT_NEAR(a[axis], -(above - below) / (2 * h), 1e-6);
    }
  }
}

// Mean over cells^3 points around a particle, which is a corner of theirs.
double mean_potential(int cells, const ReferenceOptions& options) {
  std::vector<Vector3> points;
  for (int x = 0; x < cells; ++x)
    for (int y = 0; y < cells; ++y)
      for (int z = 0; z < cells; ++z)
        points.push_back({0.3 + (x + 0.5) / cells, 0.6 + (y + 0.5) / cells, 0.2 + (z + 0.5) / cells});
  const ReferenceForces f = ewald_reference({{0.3, 0.6, 0.2}}, {1}, points, options);
  double mean = 0;
  for (const double potential : f.potential) mean += potential / static_cast<double>(points.size());
  return mean;
}

TEST(Ewald, MeanPotentialIsZero) {
  // The midpoint rule's error at the pole falls with the square of the spacing.
  EXPECT_NEAR((4 * mean_potential(10, {}) - mean_potential(5, {})) / 3, 0, 1e-9);
  for (const Softening kind : {Softening::kPlummer, Softening::kSpline}) {
    const ReferenceOptions softened{.kind = kind, .softening = 0.1};  // takes 0.03 and more
    EXPECT_NEAR(mean_potential(20, softened), 0, 1e-4) << static_cast<int>(kind);
  }
}

TEST(Ewald, SofteningLimits) {
  const double d = 1e-3;
  const Set set{{{0.5, 0.5, 0.5}, {0.5 + d, 0.5, 0.5}}, {1, 1}};
  for (const Softening kind : {Softening::kPlummer, Softening::kSpline}) {
    const double eps = 2e-3;
    const double a = ewald(set, 11.2, eps, kind).acceleration[0][0];
    const PairValue pair = softened_newton(d * d, kind, eps);
    EXPECT_NEAR(a, pair.g * d, 1e-2);  // the images' tide at this distance is 4 pi / 3 d
  }
  const double hard = ewald(set).acceleration[0][0];
  EXPECT_NEAR(hard, 1 / (d * d), 1e-2);
}

}  // namespace
}  // namespace maki
