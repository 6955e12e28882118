#include "src/run/initial_sets.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "src/config/resolve.hpp"
#include "src/ic/lagrangian.hpp"
#include "src/ic/models.hpp"
#include "src/io/snapshot_io.hpp"

namespace maki {

PowerSpectrum linear_power(const Config& config, const UnitSystem& units) {
  return PowerSpectrum(power_options(config), cosmology_parameters(config), units);
}

namespace {

Snapshot make_lpt(const Config& config, const UnitSystem& units, const Communicator& ranks) {
  const Cosmology cosmology(cosmology_parameters(config), units);
  const PowerSpectrum power = linear_power(config, units);
  CosmologicalIcParameters parameters;
  parameters.seed = static_cast<std::uint64_t>(config.initial.seed);
  parameters.particles_per_side = static_cast<int>(config.initial.particles_per_side);
  parameters.box_size = number_of(*config.box.size, "box.size", config, units);
  parameters.redshift = *config.initial.redshift;
  parameters.second_order = config.initial.lpt_order == 2;
  parameters.fixed_amplitudes = config.initial.fixed_amplitudes;
  parameters.flip_phases = config.initial.flip_phases;
  return make_cosmological_ic(parameters, cosmology, power, ranks);
}

Snapshot make_pancake_set(const Config& config, const UnitSystem& units, const Communicator& ranks) {
  PancakeParameters parameters;
  parameters.particles_per_side = static_cast<int>(config.initial.particles_per_side);
  parameters.box_size = number_of(*config.box.size, "box.size", config, units);
  parameters.redshift = *config.initial.redshift;
  parameters.collapse_redshift = config.initial.collapse_redshift;
  return make_pancake(parameters, Cosmology(cosmology_parameters(config), units), ranks);
}

Snapshot make_model(const Config& config, const UnitSystem& units, const Communicator& ranks) {
  const Config::Initial& given = config.initial;
  const auto number = [&](const Quantity& quantity, const char* key) {
    return number_of(quantity, key, config, units);
  };
  const double mass = number(given.mass, "initial.mass");
  const double radius = number(given.radius, "initial.radius");
  const auto seed = static_cast<std::uint64_t>(given.seed);
  const auto particles = static_cast<std::uint64_t>(given.particles);
  switch (given.kind) {
    case InitialKind::kPlummer: {
      const double truncation =
          given.truncation_radius ? number(*given.truncation_radius, "initial.truncation_radius") : 0.0;
      return make_plummer({seed, particles, mass, radius, truncation}, ranks);
    }
    case InitialKind::kColdSphere: return make_cold_sphere({seed, particles, mass, radius, given.virial_ratio}, ranks);
    case InitialKind::kKeplerDisk: {
      KeplerDiskParameters disk;
      disk.seed = seed;
      disk.particles = particles;
      disk.central_mass = mass;
      disk.disk_mass = number(given.disk_mass, "initial.disk_mass");
      disk.inner_radius = number(given.inner_radius, "initial.inner_radius");
      disk.outer_radius = radius;
      disk.surface_density_slope = given.surface_density_slope;
      disk.eccentricity = given.eccentricity;
      disk.inclination = given.inclination;
      return make_kepler_disk(disk, ranks);
    }
    case InitialKind::kTwoBody:
      return make_two_body({mass, number(given.second_mass, "initial.second_mass"), radius, given.eccentricity}, ranks);
    default: throw std::logic_error("not an isolated model");
  }
}

}  // namespace

Snapshot make_cosmological_set(const Config& config, const UnitSystem& units, const Communicator& ranks) {
  const bool pancake = config.initial.kind == InitialKind::kPancake;
  return pancake ? make_pancake_set(config, units, ranks) : make_lpt(config, units, ranks);
}

Snapshot make_isolated_set(const Config& config, const UnitSystem& units, const Communicator& ranks) {
  Snapshot set = make_model(config, units, ranks);
  const double constant = run_gravitational_constant(config, units, nullptr);
  const auto scale = static_cast<float>(std::sqrt(constant));  // models are made with G = 1
  for (auto& velocity : set.velocities) {
    for (float& component : velocity) component *= scale;
  }
  set.header.units = units;
  set.header.gravitational_constant = constant;
  return set;
}

// ---- boxes of isolated sets -----------------------------------------------------------------------------------------

// The side is a little more than four times the reach, so that no particle is on the edge of the middle half.
double side_of(double reach) { return std::exp2(std::ceil(std::log2(4.01 * reach))); }

std::array<double, 3> median_of(const Snapshot& share, const Communicator& ranks) {
  auto [low, high] = extent_of(share, ranks);
  const std::uint64_t all = sum_of(ranks, std::uint64_t{share.size()});
  for (int round = 0; round < 100; ++round) {
    std::array<double, 3> middle;
    for (std::size_t axis = 0; axis < 3; ++axis) middle[axis] = (low[axis] + high[axis]) / 2;
    if (middle == low) break;
    std::uint64_t x = 0, y = 0, z = 0;
#pragma omp parallel for reduction(+ : x, y, z)
    for (std::size_t i = 0; i < share.size(); ++i) {
      const auto& position = share.positions[i];
      x += position[0] < middle[0], y += position[1] < middle[1], z += position[2] < middle[2];
    }
    std::array<std::uint64_t, 3> below{x, y, z};
    ranks.sum(below);
    for (std::size_t axis = 0; axis < 3; ++axis) (2 * below[axis] > all ? high : low)[axis] = middle[axis];
  }
  return low;
}

IsolatedBox isolated_box(const Snapshot& share, const Communicator& ranks) {
  const auto [low, high] = extent_of(share, ranks);
  IsolatedBox box;
  double reach = 0;  // largest |coordinate| of the set
  double extent = 0;
  std::array<double, 3> middle{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    middle[axis] = (low[axis] + high[axis]) / 2;
    extent = std::max(extent, high[axis] - low[axis]);
    reach = std::max({reach, -low[axis], high[axis]});
  }
  if (reach > 0.75 * extent) {
    box.centre = middle;
    reach = extent / 2;
  }
  box.side = side_of(reach > 0 ? reach : 0.25);  // one particle: any box will do
  return box;
}

}  // namespace maki
