#include "tests/physics/isolated_runs.hpp"

#include <cmath>
#include <numbers>

#include "src/ic/models.hpp"
#include "tests/physics/physics_runs.hpp"

namespace maki {

namespace {

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

}  // namespace

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
  const RunRecord record = run(initial, options, Timeline::newtonian());
  // The orbit began at apocentre, where the mean anomaly is pi.
  const double anomaly = mean_anomaly(record.outputs.back(), bodies.semi_major_axis, mass);
  return {record.result.worst_energy_error, std::numbers::pi - std::fabs(anomaly),
          static_cast<double>(record.result.steps) / periods};
}

EquilibriumErrors plummer_sphere(std::uint64_t particles, double crossing_times) {
  PlummerParameters parameters;
  parameters.particles = particles;
  const Snapshot initial = make_plummer(parameters);
  const double softening = std::pow(static_cast<double>(particles), -1.0 / 3) / 4;
  SimulationOptions options = isolated_options(initial, softening, crossing_times * 2 * std::numbers::sqrt2);
  options.step_options.eta = 0.1;
  const RunRecord record = run(initial, options, Timeline::newtonian());
  const auto change = [&](double fraction) {
    return std::fabs(lagrangian_radius(record.outputs.back(), fraction) / lagrangian_radius(initial, fraction) - 1);
  };
  return {record.result.worst_energy_error, change(0.5), change(0.1), record.result.worst_force_residual};
}

double cold_collapse(std::uint64_t particles) {
  ColdSphereParameters parameters;
  parameters.particles = particles;
  const Snapshot initial = make_cold_sphere(parameters);
  SimulationOptions options = isolated_options(initial, 1.0 / 32, 7);
  options.step_options.eta = 0.05;
  return run(initial, options, Timeline::newtonian()).result.worst_energy_error;
}

}  // namespace maki
