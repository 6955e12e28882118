#include "src/ic/models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "kernels/error.hpp"
#include "tests/threads.hpp"

namespace maki {
namespace {

using Vector = std::array<double, 3>;

double norm(const Vector& v) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

double kinetic_energy(const Snapshot& s) {
  double sum = 0;
  for (std::size_t i = 0; i < s.size(); ++i)
    for (double v : s.velocities[i]) sum += 0.5 * s.masses[i] * v * v;
  return sum;
}

double potential_energy(const Snapshot& s) {
  double sum = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      Vector d;
      for (int k = 0; k < 3; ++k) d[k] = s.positions[i][k] - s.positions[j][k];
      sum -= static_cast<double>(s.masses[i]) * s.masses[j] / norm(d);
    }
  }
  return sum;
}

void expect_isolated_and_centred(const Snapshot& s, double size, double speed) {
  EXPECT_FALSE(s.header.comoving);
  EXPECT_EQ(s.header.gravitational_constant, 1);
  EXPECT_EQ(s.header.time, 0);
  EXPECT_EQ(s.header.box_size, 0);
  double mass = 0;
  Vector position = {}, momentum = {};
  for (std::size_t i = 0; i < s.size(); ++i) {
    EXPECT_EQ(s.ids[i], i + 1);
    mass += s.masses[i];
    for (int k = 0; k < 3; ++k) {
      position[k] += s.masses[i] * s.positions[i][k];
      momentum[k] += s.masses[i] * s.velocities[i][k];
    }
  }
  EXPECT_LT(norm(position) / mass, 1e-7 * size);
  EXPECT_LT(norm(momentum) / mass, 1e-7 * speed);
}

// Largest distance of the distribution of `values` from a cumulative distribution (Kolmogorov-Smirnov), times sqrt(N):
// above 1.95 in one case of a thousand.
template <class Cumulative>
double distance_from(std::vector<double> values, const Cumulative& cumulative) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double f = cumulative(values[i]);
    worst = std::max({worst, std::abs(f - static_cast<double>(i) / n), std::abs(f - static_cast<double>(i + 1) / n)});
  }
  return worst * std::sqrt(n);
}

std::vector<double> radii(const Snapshot& s) {
  std::vector<double> r;
  for (const Vector& x : s.positions) r.push_back(norm(x));
  return r;
}

std::vector<double> cosines(const Snapshot& s) {
  std::vector<double> c;
  for (const Vector& x : s.positions) c.push_back(x[2] / norm(x));
  return c;
}

double uniform_cosine(double c) { return (c + 1) / 2; }

TEST(Plummer, ProfileAndVirialEquilibrium) {
  const PlummerParameters p = {.particles = 6000};
  const Snapshot s = make_plummer(p);
  ASSERT_EQ(s.size(), 6000u);
  expect_isolated_and_centred(s, 1, 1);
  const double a = p.scale_length;
  EXPECT_LT(distance_from(radii(s), [a](double r) { return std::pow(1 + a * a / (r * r), -1.5); }), 1.95);
  // Henon's units: T = 1/4, W = -1/2, to a few times their scatter at this N.
  const double kinetic = kinetic_energy(s), potential = potential_energy(s);
  EXPECT_NEAR(kinetic, 0.25, 0.01);
  EXPECT_NEAR(potential, -0.5, 0.02);
  EXPECT_NEAR(-2 * kinetic / potential, 1, 0.03);
}

TEST(Plummer, SpeedsFollowTheDistributionFunction) {
  const PlummerParameters p = {.particles = 20000, .mass = 3, .scale_length = 2};
  const Snapshot s = make_plummer(p);
  std::vector<double> q;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const double escape = std::sqrt(2 * p.mass / std::hypot(norm(s.positions[i]), p.scale_length));
    q.push_back(norm({s.velocities[i][0], s.velocities[i][1], s.velocities[i][2]}) / escape);
  }
  // int_0^q x^2 (1 - x^2)^(7/2) dx with x = sin t, by the midpoint rule.
  const auto integral = [](double limit) {
    const double t = std::asin(std::min(limit, 1.0));
    double sum = 0;
    for (int i = 0; i < 100; ++i) {
      const double x = (i + 0.5) * t / 100;
      sum += std::pow(std::sin(x), 2) * std::pow(std::cos(x), 8);
    }
    return sum * t / 100;
  };
  const double total = integral(1);
  EXPECT_NEAR(total, 7 * std::numbers::pi / 512, 1e-6);
  // Centring moves the speeds by less than their scatter/sqrt(N).
  EXPECT_LT(distance_from(q, [&](double x) { return integral(x) / total; }), 1.95);
}

TEST(Plummer, TruncationKeepsTheModelInside) {
  const PlummerParameters p = {.particles = 5000, .scale_length = 0.5, .truncation_radius = 1};
  const Snapshot s = make_plummer(p);
  const double inside = std::pow(1.25, -1.5), a = p.scale_length;
  double mass = 0;
  for (float m : s.masses) mass += m;
  EXPECT_NEAR(mass, inside, 1e-6);
  const std::vector<double> r = radii(s);
  EXPECT_LT(*std::max_element(r.begin(), r.end()), 1.05 * p.truncation_radius);  // centring moves them a little
  const auto enclosed = [&](double x) { return std::min(1.0, std::pow(1 + a * a / (x * x), -1.5) / inside); };
  EXPECT_LT(distance_from(r, enclosed), 1.95);
  EXPECT_LT(distance_from(cosines(s), uniform_cosine), 1.95);
}

TEST(ColdSphere, IsUniformAndAtRest) {
  ColdSphereParameters p = {.particles = 5000};
  const Snapshot s = make_cold_sphere(p);
  expect_isolated_and_centred(s, p.radius, 1);
  // The centre of mass is moved by the scatter of the positions, hence the clamp.
  EXPECT_LT(distance_from(radii(s), [&](double r) { return std::min(1.0, std::pow(r / p.radius, 3)); }), 1.95);
  EXPECT_LT(distance_from(cosines(s), uniform_cosine), 1.95);
  EXPECT_EQ(kinetic_energy(s), 0);
  EXPECT_NEAR(potential_energy(s), -0.2, 0.004);  // -3/5 M^2/R
  p.virial_ratio = 0.5;
  EXPECT_NEAR(kinetic_energy(make_cold_sphere(p)), 0.05, 0.002);
}

TEST(KeplerDisk, OrbitsAreAsAsked) {
  const KeplerDiskParameters p = {.particles = 5000};
  const Snapshot s = make_kepler_disk(p);
  ASSERT_EQ(s.size(), 5001u);
  expect_isolated_and_centred(s, 1, 1);
  EXPECT_EQ(s.masses[0], 1);
  double e2 = 0, i2 = 0;
  std::vector<double> axes;
  for (std::size_t i = 1; i < s.size(); ++i) {
    Vector x, v;
    for (int k = 0; k < 3; ++k) {
      x[k] = s.positions[i][k] - s.positions[0][k];
      v[k] = static_cast<double>(s.velocities[i][k]) - s.velocities[0][k];
    }
    const double r = norm(x), v2 = norm(v) * norm(v);
    const double axis = 1 / (2 / r - v2);
    const Vector spin = {x[1] * v[2] - x[2] * v[1], x[2] * v[0] - x[0] * v[2], x[0] * v[1] - x[1] * v[0]};
    EXPECT_GT(spin[2], 0);
    axes.push_back(axis);
    e2 += std::max(0.0, 1 - norm(spin) * norm(spin) / axis) / 5000;
    i2 += std::pow(std::acos(std::min(1.0, spin[2] / norm(spin))), 2) / 5000;
  }
  EXPECT_NEAR(std::sqrt(e2), p.eccentricity, 5e-4);
  EXPECT_NEAR(std::sqrt(i2), p.inclination, 3e-4);
  // Surface density ~ 1/r: uniform in radius.
  EXPECT_LT(distance_from(axes, [](double a) { return std::clamp(a - 1, 0.0, 1.0); }), 1.95);
}

TEST(TwoBody, EnergyAndAngularMomentum) {
  const TwoBodyParameters p = {.mass1 = 3, .mass2 = 0.5, .semi_major_axis = 2, .eccentricity = 0.6};
  const Snapshot s = make_two_body(p);
  expect_isolated_and_centred(s, 1, 1);
  EXPECT_NEAR(kinetic_energy(s) + potential_energy(s), -p.mass1 * p.mass2 / (2 * p.semi_major_axis), 1e-6);
  double spin = 0;
  for (int i = 0; i < 2; ++i)
    spin += s.masses[i] * (s.positions[i][0] * s.velocities[i][1] - s.positions[i][1] * s.velocities[i][0]);
  const double reduced = p.mass1 * p.mass2 / 3.5;
  EXPECT_NEAR(spin, reduced * std::sqrt(3.5 * 2 * (1 - 0.36)), 1e-6);
  EXPECT_NEAR(s.positions[1][0] - s.positions[0][0], 3.2, 1e-14);
}

TEST(Models, ReproducibleForAnyNumberOfThreads) {
  const auto state = [] {
    const Snapshot s = make_plummer({.particles = 1000});
    return std::pair(s.positions, s.velocities);
  };
  test::expect_same_for_threads(state, {1, 4});
  EXPECT_NE(make_plummer({.seed = 2, .particles = 1000}).positions, state().first);
}

TEST(Models, RefuseSenselessParameters) {
  EXPECT_THROW(make_plummer({.particles = 0}), Error);
  EXPECT_THROW(make_plummer({.particles = 10, .mass = 1e-60}), Error);
  EXPECT_THROW(make_cold_sphere({.radius = -1}), Error);
  EXPECT_THROW(make_kepler_disk({.outer_radius = 0.5}), Error);
  EXPECT_THROW(make_two_body({.eccentricity = 1}), Error);
}

}  // namespace
}  // namespace maki
