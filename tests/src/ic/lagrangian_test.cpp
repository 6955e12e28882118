#include "src/ic/lagrangian.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <utility>

#include "kernels/error.hpp"
#include "tests/threads.hpp"

namespace maki {
namespace {

constexpr double kBox = 40;

struct Universe {
  CosmologyParameters parameters;
  Cosmology cosmology{parameters, UnitSystem{}};
  PowerSpectrum power{{}, parameters, UnitSystem{}};
};

constexpr Background kEinsteinDeSitter = {.omega0 = 1, .omega_lambda = 0};

CosmologicalIcParameters lattice(double redshift, bool second_order, bool dealias = true) {
  return {.box_size = kBox, .redshift = redshift, .second_order = second_order, .dealias = dealias};
}

// Adds amplitude * cos(k q).
void add_wave(PeriodicGrid& density, const std::array<int, 3>& m, double amplitude) {
  for (int sign : {1, -1}) {
    if (sign * m[2] < 0) continue;
    density.mode_row(density.index_of(sign * m[0]), density.index_of(sign * m[1]))[std::abs(m[2])] += amplitude / 2;
  }
}

std::array<int, 3> site_of(std::size_t i, int n) {
  return {static_cast<int>(i / (n * n)), static_cast<int>(i / n % n), static_cast<int>(i % n)};
}

double displacement(const Snapshot& s, std::size_t i, int axis, int n) {
  const double d = s.positions[i][axis] - kBox * site_of(i, n)[axis] / n;
  return d - kBox * std::round(d / kBox);
}

double phase(const std::array<int, 3>& m, const std::array<int, 3>& site, int n) {
  return 2 * std::numbers::pi / n * (m[0] * site[0] + m[1] * site[1] + m[2] * site[2]);
}

TEST(Lagrangian, PancakeIsTheExactSolution) {
  for (const Background& universe : {kEinsteinDeSitter, Background{}}) {
    const Cosmology cosmology(universe, UnitSystem{});
    PancakeParameters p = {.particles_per_side = 16, .box_size = kBox, .redshift = 9, .collapse_redshift = 1};
    for (const auto& wave : {std::array{1, 0, 0}, std::array{0, 1, -2}}) {
      p.wave = wave;
      const Snapshot s = make_pancake(p, cosmology);
      const Growth now = cosmology.growth(0.1);
      const double ratio = now.d1 / cosmology.growth(0.5).d1;
      if (universe.omega_lambda == 0) {
        EXPECT_NEAR(ratio, 0.2, 1e-12);
      }
      const double m2 = wave[0] * wave[0] + wave[1] * wave[1] + wave[2] * wave[2];
      for (std::size_t i = 0; i < s.size(); ++i) {
        for (int axis = 0; axis < 3; ++axis) {
          const double k_over_k2 = kBox / (2 * std::numbers::pi) * wave[axis] / m2;
          const double expected = -ratio * k_over_k2 * std::sin(phase(wave, site_of(i, 16), 16));
          ASSERT_NEAR(displacement(s, i, axis, 16), expected, 1e-13);
          ASSERT_NEAR(s.velocities[i][axis], 0.1 * cosmology.hubble(0.1) * now.f1 * expected, 5e-5);
        }
      }
    }
  }
}

TEST(Lagrangian, SecondOrderOfTwoWaves) {
  const int n = 16;
  const Cosmology cosmology(kEinsteinDeSitter, UnitSystem{});
  const std::array<int, 3> m1 = {1, 2, 0}, m2 = {2, -1, 3};
  const double a1 = 0.7, a2 = 0.4, a = 0.2;
  PeriodicGrid density(n);
  add_wave(density, m1, a1);
  add_wave(density, m2, a2);
  const auto dot = [](const auto& x, const auto& y) { return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]; };
  const double mu2 = std::pow(dot(m1, m2), 2) / static_cast<double>(dot(m1, m1) * dot(m2, m2));
  for (bool dealias : {false, true}) {  // the sums of these modes fit the lattice without
    const Snapshot first = displace_lattice(density, lattice(1 / a - 1, false), cosmology);
    const Snapshot second = displace_lattice(density, lattice(1 / a - 1, true, dealias), cosmology);
    const double speed = a * cosmology.hubble(a);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const auto site = site_of(i, n);
      const double p1 = phase(m1, site, n), p2 = phase(m2, site, n);
      for (int axis = 0; axis < 3; ++axis) {
        // lap phi2 = a1 a2 (1 - mu^2) cos(p1) cos(p2), psi2 = grad phi2, by the sum and the difference of the waves.
        double expected = 0;
        for (int sign : {1, -1}) {
          std::array<int, 3> m;
          for (int j = 0; j < 3; ++j) m[j] = m1[j] + sign * m2[j];
          const double gradient = m[axis] * kBox / (2 * std::numbers::pi) / dot(m, m);
          expected += 0.5 * a1 * a2 * (1 - mu2) * gradient * std::sin(p1 + sign * p2);
        }
        expected *= -3.0 / 7 * a * a;
        ASSERT_NEAR(displacement(second, i, axis, n) - displacement(first, i, axis, n), expected, 1e-13);
        ASSERT_NEAR(second.velocities[i][axis] - first.velocities[i][axis], 2 * speed * expected, 3e-4);
      }
    }
  }
}

// Modes above n/4 make sums that the lattice cannot hold: with the 3/2 rule they leave, without it they come back.
TEST(Lagrangian, DealiasingRemovesFalseModes) {
  const int n = 16;
  const Cosmology cosmology(kEinsteinDeSitter, UnitSystem{});
  PeriodicGrid density(n);
  add_wave(density, {7, 0, 0}, 1);
  add_wave(density, {5, 7, 0}, 1);
  const auto largest_along_y = [&](bool dealias) {  // the true sum and difference, (12, 7, 0) and (2, -7, 0)
    const Snapshot s = displace_lattice(density, lattice(9, true, dealias), cosmology);
    const Snapshot first = displace_lattice(density, lattice(9, false), cosmology);
    // Project on the alias (-4, 7, 0) of the sum.
    double projection = 0;
    for (std::size_t i = 0; i < s.size(); ++i)
      projection += (displacement(s, i, 1, n) - displacement(first, i, 1, n)) *
                    std::sin(phase({-4, 7, 0}, site_of(i, n), n)) / static_cast<double>(s.size());
    return std::abs(projection);
  };
  EXPECT_LT(largest_along_y(true), 1e-14);
  EXPECT_GT(largest_along_y(false), 1e-6);
}

TEST(Lagrangian, VelocityIsTheTimeDerivativeOfPosition) {
  const Universe u;
  CosmologicalIcParameters p = lattice(9, true);
  p.particles_per_side = 16;
  const double a = 0.1, h = 1e-3;
  const Snapshot now = make_cosmological_ic(p, u.cosmology, u.power);
  p.redshift = 1 / (a * std::exp(h)) - 1;
  const Snapshot later = make_cosmological_ic(p, u.cosmology, u.power);
  p.redshift = 1 / (a * std::exp(-h)) - 1;
  const Snapshot earlier = make_cosmological_ic(p, u.cosmology, u.power);
  double error = 0, size = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    for (int axis = 0; axis < 3; ++axis) {
      const double dx = displacement(later, i, axis, 16) - displacement(earlier, i, axis, 16);
      const double v = a * a * u.cosmology.hubble(a) * dx / (2 * h) / a;
      error = std::max(error, std::abs(v - now.velocities[i][axis]));
      size = std::max(size, std::abs(v));
    }
  }
  EXPECT_GT(size, 10);  // km/s
  EXPECT_LT(error / size, 1e-6);
}

TEST(Lagrangian, ParticlesFillTheBox) {
  const Universe u;
  CosmologicalIcParameters p = lattice(3, true);
  p.particles_per_side = 32;
  const Snapshot s = make_cosmological_ic(p, u.cosmology, u.power);
  ASSERT_EQ(s.size(), 32u * 32 * 32);
  ASSERT_EQ(s.velocities.size(), s.size());
  double mass = 0;
  std::array<double, 3> drift = {};
  for (std::size_t i = 0; i < s.size(); ++i) {
    EXPECT_EQ(s.ids[i], i + 1);
    mass += s.masses[i];
    for (int axis = 0; axis < 3; ++axis) {
      ASSERT_TRUE(s.positions[i][axis] >= 0 && s.positions[i][axis] < kBox);
      drift[axis] += displacement(s, i, axis, 32) / static_cast<double>(s.size());
    }
  }
  EXPECT_NEAR(mass / (u.cosmology.mean_density() * kBox * kBox * kBox), 1, 1e-6);
  for (double d : drift) EXPECT_NEAR(d, 0, 1e-14 * kBox);
  EXPECT_TRUE(s.header.comoving);
  EXPECT_DOUBLE_EQ(s.header.time, 0.25);
  EXPECT_EQ(s.header.redshift, 3);
  EXPECT_EQ(s.header.box_size, kBox);
  EXPECT_EQ(s.header.omega0, u.parameters.omega0);
  EXPECT_EQ(s.header.hubble, u.parameters.hubble);
}

TEST(Lagrangian, SameBitsForAnyNumberOfThreads) {
  const Universe u;
  CosmologicalIcParameters p = lattice(9, true);
  p.particles_per_side = 20;
  const auto state = [&] {
    const Snapshot s = make_cosmological_ic(p, u.cosmology, u.power);
    return std::pair(s.positions, s.velocities);
  };
  test::expect_same_for_threads(state, {1, 2, 5});
}

TEST(Lagrangian, RefusesSenselessParameters) {
  const Universe u;
  const auto refused = [&](auto change) {
    CosmologicalIcParameters p;
    change(p);
    EXPECT_THROW(make_cosmological_ic(p, u.cosmology, u.power), Error);
  };
  refused([](auto& p) { p.particles_per_side = 31; });
  refused([](auto& p) { p.particles_per_side = 0; });
  refused([](auto& p) { p.box_size = -1; });
  refused([](auto& p) { p.box_size = NAN; });
  refused([](auto& p) { p.redshift = -1; });
  EXPECT_THROW(make_pancake({.collapse_redshift = 60}, u.cosmology), Error);
  EXPECT_THROW(make_pancake({.wave = {0, 0, 0}}, u.cosmology), Error);
}

}  // namespace
}  // namespace maki
