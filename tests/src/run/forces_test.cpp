// Forces at points that are no particles, beside exact sums.
#include "src/run/forces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/error.hpp"
#include "src/config/parse.hpp"
#include "src/run/run_options.hpp"
#include "tests/force_errors.hpp"

namespace maki {
namespace {

using Points = std::vector<std::array<double, 3>>;

Points random_points(std::size_t n, double low, double high) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> anywhere(low, high);
  Points points(n);
  for (auto& point : points)
    for (double& x : point) x = anywhere(random);
  return points;
}

Prepared box(const std::vector<std::string>& settings = {}) {
  return prepare(
      parse_config("[box]\nsize = \"30 Mpc/h\"\n[initial]\nparticles_per_side = 16\nredshift = 4\n", "test", settings));
}

Prepared sphere(const std::vector<std::string>& settings = {}) {
  return prepare(
      parse_config("[run]\nkind = \"isolated\"\n[initial]\nkind = \"plummer\"\nparticles = 3000\n"
                   "truncation_radius = 5.0\n[gravity]\nsoftening = 0.02\n",
                   "test", settings));
}

double rms_error(const SetForces& forces, const SetForces& exact) {
  return testing::force_errors(forces.acceleration, exact.acceleration).rms;
}

double largest_error(const std::vector<double>& values, const std::vector<double>& exact) {
  double error = 0, scale = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error = std::max(error, std::abs(values[i] - exact[i]));
    scale = std::max(scale, std::abs(exact[i]));
  }
  return error / scale;
}

TEST(ForcesAt, PointsOfABoxAreAsEwaldsSumHasThem) {
  const Prepared run = box();
  const Points points = random_points(300, -30, 60);
  const SetForces exact = forces_at(run, ForceMethod::kEwald, points),
                  found = forces_at(run, ForceMethod::kRun, points);
  EXPECT_LT(rms_error(found, exact), 1e-3);
  EXPECT_LT(largest_error(found.potential, exact.potential), 1e-3);
}

TEST(ForcesAt, PointsInAndAroundASphereAreAsTheDirectSumHasThem) {
  const Prepared run = sphere();
  Points points = random_points(300, -2, 2);
  const SetForces exact = forces_at(run, ForceMethod::kDirect, points),
                  found = forces_at(run, ForceMethod::kRun, points);
  EXPECT_LT(rms_error(found, exact), 1e-3);
  EXPECT_LT(largest_error(found.potential, exact.potential), 1e-3);
  points = {{300, 0, 0}, {0, 0, -20}};  // outside of the run's box
  EXPECT_LT(rms_error(forces_at(run, ForceMethod::kRun, points), forces_at(run, ForceMethod::kDirect, points)), 1e-3);
}

// The particle itself is left out there, as in the forces on particles.
TEST(ForcesAt, APointAtAParticleFeelsTheOthers) {
  for (const bool periodic : {true, false}) {
    const Prepared run = periodic ? box() : sphere({"gravity.softening_kind=plummer"});
    const ForceMethod exact = periodic ? ForceMethod::kEwald : ForceMethod::kDirect;
    const std::vector<std::size_t> some = {0, 17, 40, 2000, 2999};
    Points points;
    for (const std::size_t i : some) points.push_back(run.initial.positions[i]);
    const SetForces on_particles = forces_of(run, exact, some), found = forces_at(run, ForceMethod::kRun, points);
    EXPECT_LT(rms_error(found, on_particles), 2e-3) << periodic;
    EXPECT_LT(largest_error(found.potential, on_particles.potential), 1e-3) << periodic;
    EXPECT_LT(rms_error(forces_at(run, exact, points), on_particles), 1e-12) << periodic;
  }
}

// At z = 4 a physical length of 20 kpc/h is a comoving one of 100 kpc/h.
TEST(ForcesOf, ABoxHaveTheCapOfThePhysicalSoftening) {
  const std::vector<std::string> wide = {"gravity.softening=300 kpc/h"};
  const Prepared capped = box({wide[0], "max_physical_softening=20 kpc/h"}), same = box({"softening=100 kpc/h"});
  EXPECT_EQ(softening_text(capped), "softening 0.1 Mpc/h (physical: at most 0.02 Mpc/h)");
  EXPECT_EQ(softening_text(same), "softening 0.1 Mpc/h");
  const std::vector<std::size_t> all = spread_targets(capped.particles, 0);
  for (const ForceMethod method : {ForceMethod::kRun, ForceMethod::kEwald}) {
    const SetForces forces = forces_of(same, method, all);
    EXPECT_LT(rms_error(forces_of(capped, method, all), forces), 1e-6);
    EXPECT_GT(rms_error(forces_of(box(wide), method, all), forces), 1e-3);
    EXPECT_LT(rms_error(forces_at(capped, method, same.initial.positions), forces), 2e-3);
  }
}

TEST(ForcesAt, ADirectRunHasExactForces) {
  const Prepared run = sphere({"gravity.method=direct"});
  const Points points = random_points(20, -1, 1);
  EXPECT_EQ(rms_error(forces_at(run, ForceMethod::kRun, points), forces_at(run, ForceMethod::kDirect, points)), 0);
}

TEST(ForcesAt, RefusesWhatHasNoForce) {
  EXPECT_TRUE(forces_at(sphere(), ForceMethod::kRun, {}).acceleration.empty());
  EXPECT_THROW(forces_at(sphere(), ForceMethod::kRun, {{0, NAN, 0}}), Error);
  EXPECT_THROW(forces_at(sphere(), ForceMethod::kEwald, {{0, 0, 0}}), Error);
  EXPECT_THROW(forces_at(box(), ForceMethod::kDirect, {{0, 0, 0}}), Error);
  EXPECT_THROW(forces_at(sphere(), ForceMethod::kRun, {{0, 0, 1e9}}), Error);  // the softening would be below its limit
}

}  // namespace
}  // namespace maki
