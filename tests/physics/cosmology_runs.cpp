#include "tests/physics/cosmology_runs.hpp"

#include <algorithm>
#include <cmath>

#include "src/ic/lagrangian.hpp"

namespace maki {

namespace {

constexpr double kSide = 50;

double nearest(double distance) { return distance - kSide * std::round(distance / kSide); }

Cosmology standard_cosmology(double sigma8) {
  CosmologyParameters parameters;
  parameters.sigma8 = sigma8;
  return Cosmology(parameters, UnitSystem{});
}

Snapshot universe(int particles_per_side, double redshift, const Cosmology& cosmology, bool flip_phases = false) {
  CosmologicalIcParameters parameters;
  parameters.particles_per_side = particles_per_side;
  parameters.box_size = kSide;
  parameters.redshift = redshift;
  parameters.flip_phases = flip_phases;
  return make_cosmological_ic(parameters, cosmology, PowerSpectrum({}, cosmology.parameters(), cosmology.units()));
}

}  // namespace

Timeline standard_timeline() { return Timeline::comoving({}, {}); }

Snapshot standard_universe(int particles_per_side) {
  return universe(particles_per_side, 49, standard_cosmology(CosmologyParameters{}.sigma8));
}

PancakeErrors pancake(int particles_per_side, double end_redshift) {
  const Cosmology cosmology = standard_cosmology(CosmologyParameters{}.sigma8);
  PancakeParameters parameters;
  parameters.particles_per_side = particles_per_side;
  parameters.box_size = kSide;
  const Snapshot initial = make_pancake(parameters, cosmology);
  parameters.redshift = end_redshift;
  const Snapshot exact = make_pancake(parameters, cosmology);

  // Sheets of particles only look smooth to a force that is soft on the scale of their spacing.
  const double spacing = kSide / particles_per_side;
  const RunRecord record = run(initial, box_options(initial, 0.3 * spacing, end_redshift), standard_timeline());
  const Snapshot& end = record.outputs.back();
  const auto place = index_by_id(end);
  double x2 = 0, displacement2 = 0, v2 = 0, speed2 = 0, transverse = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const std::size_t j = place.at(exact.ids[i]);
    const auto plane = (exact.ids[i] - 1) / static_cast<std::uint64_t>(particles_per_side * particles_per_side);
    const auto dx = [&](std::size_t axis) { return nearest(end.positions[j][axis] - exact.positions[i][axis]); };
    x2 += std::pow(dx(0), 2);
    displacement2 += std::pow(nearest(exact.positions[i][0] - static_cast<double>(plane) * spacing), 2);
    v2 += std::pow(end.velocities[j][0] - exact.velocities[i][0], 2);
    speed2 += std::pow(exact.velocities[i][0], 2);
    transverse = std::max({transverse, std::fabs(dx(1)), std::fabs(dx(2))});
  }
  return {std::sqrt(x2 / displacement2), std::sqrt(v2 / speed2), transverse / spacing};
}

GrowthErrors linear_growth(int particles_per_side, double sigma8, double theta) {
  constexpr int kBins = 2;
  const Cosmology cosmology = standard_cosmology(sigma8);
  // Power of both members of a pair: what goes with the third power of the contrast drops out.
  std::vector<double> before(kBins), after(kBins), lpt(kBins);
  const auto add = [](std::vector<double>& sum, const Snapshot& snapshot) {
    const std::vector<double> power = mode_power(snapshot, kBins);
    for (std::size_t bin = 0; bin < kBins; ++bin) sum[bin] += power[bin];
  };
  for (const bool flip : {false, true}) {
    const Snapshot initial = universe(particles_per_side, 49, cosmology, flip);
    SimulationOptions options = box_options(initial, 0.04 * kSide / particles_per_side, 9);
    options.gravity.theta = options.theta_early = theta;
    options.energy_interval = 0;
    const RunRecord record = run(initial, options, Timeline::comoving(cosmology.parameters(), cosmology.units()));
    add(before, initial);
    add(after, record.outputs.back());
    add(lpt, universe(particles_per_side, 9, cosmology, flip));
  }
  const double growth = cosmology.growth(0.1).d1 / cosmology.growth(0.02).d1;
  GrowthErrors errors;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    errors.linear.push_back(after[bin] / (before[bin] * growth * growth) - 1);
    errors.lpt.push_back(after[bin] / lpt[bin] - 1);
  }
  return errors;
}

}  // namespace maki
