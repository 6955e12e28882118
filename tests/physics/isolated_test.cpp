// Isolated systems with known behaviour: quick versions, and at full length.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>

#include "src/ic/models.hpp"
#include "tests/physics/physics_runs.hpp"

namespace maki {
namespace {

using testing::Ends;
using testing::run_on;

// Runs of isolated systems; each returns how far it strayed from the known solution.
struct OrbitErrors {
  double energy = 0;  // largest |dE/E|
  double phase = 0;   // at the end, radian
  double steps = 0;   // an orbit, mean
};
struct EquilibriumErrors {
  double energy = 0;            // largest |dE/E|
  double half_mass_radius = 0;  // relative change at the end
  double inner_radius = 0;      // the same for 10 % of the mass
  double momentum = 0;          // largest |sum m a| / sum m |a|
};

// Mean anomaly of the relative orbit, radian, from separation and velocity.
double mean_anomaly(const Snapshot& pair, double semi_major_axis, double mass) {
  const std::size_t first = pair.ids[0] < pair.ids[1] ? 0 : 1, second = 1 - first;
  double r2 = 0, rv = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double x = pair.positions[second][axis] - pair.positions[first][axis];
    r2 += x * x;
    rv += x * (static_cast<double>(pair.velocities[second][axis]) - pair.velocities[first][axis]);
  }
  // e cos E = 1 - r/a, e sin E = (x v) / sqrt(G m a)
  const double cosine = 1 - std::sqrt(r2) / semi_major_axis, sine = rv / std::sqrt(mass * semi_major_axis);
  return std::atan2(sine, cosine) - sine;
}

// Two equal bodies, e = 0.5, from apocentre, with the tree and adaptive steps.
OrbitErrors kepler_orbit(int periods, int steps_a_period) {
  const TwoBodyParameters bodies;
  const double mass = bodies.mass1 + bodies.mass2;
  const double period = 2 * std::numbers::pi * std::sqrt(std::pow(bodies.semi_major_axis, 3) / mass);
  const Snapshot initial = make_two_body(bodies);
  SimulationOptions options = isolated_options(initial, 1e-5, periods * period);
  // Each body feels 1/r^2, so dt = eta sqrt(softening) r; the mean of 1/r over an orbit is 1/a.
  options.step_options.eta =
      period / (steps_a_period * bodies.semi_major_axis * std::sqrt(options.step_options.softening));
  options.energy_interval = 37;
  const Ends record = run_on(initial, options, Timeline::newtonian());
  // The orbit began at apocentre, where the mean anomaly is pi.
  const double anomaly = mean_anomaly(record.state, bodies.semi_major_axis, mass);
  return {record.result.worst_energy_error, std::numbers::pi - std::fabs(anomaly),
          static_cast<double>(record.result.steps) / periods};
}

// Henon units: a crossing time is 2 sqrt(2).
EquilibriumErrors plummer_sphere(std::uint64_t particles, double crossing_times) {
  const Snapshot initial = make_plummer({.particles = particles});
  const double softening = std::pow(static_cast<double>(particles), -1.0 / 3) / 4;
  SimulationOptions options = isolated_options(initial, softening, crossing_times * 2 * std::numbers::sqrt2);
  options.step_options.eta = 0.1;
  const Ends record = run_on(initial, options, Timeline::newtonian());
  const auto change = [&](double fraction) {
    return std::fabs(lagrangian_radius(record.state, fraction) / lagrangian_radius(initial, fraction) - 1);
  };
  return {record.result.worst_energy_error, change(0.5), change(0.1), record.result.worst_force_residual};
}

// Cold uniform sphere through its collapse at t = 5.8 to t = 7: largest |dE/E|.
double cold_collapse(std::uint64_t particles) {
  const Snapshot initial = make_cold_sphere({.particles = particles});
  SimulationOptions options = isolated_options(initial, 1.0 / 32, 7);
  options.step_options.eta = 0.05;
  return run_on(initial, options, Timeline::newtonian()).result.worst_energy_error;
}

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
