#include <cmath>
#include <stdexcept>

#include "src/config/resolve.hpp"
#include "src/cosmology/power.hpp"
#include "src/ic/lagrangian.hpp"
#include "src/ic/models.hpp"
#include "src/run/setup.hpp"

namespace maki {
namespace {

Snapshot make_lpt(const Config& config, const UnitSystem& units, const Communicator& ranks) {
  const Cosmology cosmology(cosmology_parameters(config), units);
  PowerOptions options;
  options.model = config.cosmology.transfer;
  options.table_file = config.cosmology.transfer_table;
  options.table_redshift = config.cosmology.table_redshift;
  options.power_law_index = config.cosmology.power_law_index;
  const PowerSpectrum power(options, cosmology.parameters(), units);
  CosmologicalIcParameters parameters;
  parameters.seed = static_cast<std::uint64_t>(config.initial.seed);
  parameters.particles_per_side = static_cast<int>(config.initial.particles_per_side);
  parameters.box_size = number_of(*config.box.size, "box.size", config, units);
  parameters.redshift = config.initial.redshift;
  parameters.second_order = config.initial.lpt_order == 2;
  parameters.fixed_amplitudes = config.initial.fixed_amplitudes;
  parameters.flip_phases = config.initial.flip_phases;
  return make_cosmological_ic(parameters, cosmology, power, ranks);
}

Snapshot make_pancake_set(const Config& config, const UnitSystem& units, const Communicator& ranks) {
  PancakeParameters parameters;
  parameters.particles_per_side = static_cast<int>(config.initial.particles_per_side);
  parameters.box_size = number_of(*config.box.size, "box.size", config, units);
  parameters.redshift = config.initial.redshift;
  parameters.collapse_redshift = config.initial.collapse_redshift;
  return make_pancake(parameters, Cosmology(cosmology_parameters(config), units), ranks);
}

// Conversion of masses and lengths of the model to the units of the run.
struct ModelNumbers {
  const Config& config;
  const UnitSystem& units;
  double mass(const Quantity& quantity, const char* key) const { return number_of(quantity, key, config, units); }
  double length(const Quantity& quantity, const char* key) const { return number_of(quantity, key, config, units); }
};

Snapshot make_model(const Config::Initial& given, const ModelNumbers& numbers, const Communicator& ranks) {
  const double mass = numbers.mass(given.mass, "initial.mass");
  const double radius = numbers.length(given.radius, "initial.radius");
  const auto seed = static_cast<std::uint64_t>(given.seed);
  const auto particles = static_cast<std::uint64_t>(given.particles);
  switch (given.kind) {
    case InitialKind::kPlummer: {
      const double truncation =
          given.truncation_radius ? numbers.length(*given.truncation_radius, "initial.truncation_radius") : 0.0;
      return make_plummer({seed, particles, mass, radius, truncation}, ranks);
    }
    case InitialKind::kColdSphere: return make_cold_sphere({seed, particles, mass, radius, given.virial_ratio}, ranks);
    case InitialKind::kKeplerDisk: {
      KeplerDiskParameters disk;
      disk.seed = seed;
      disk.particles = particles;
      disk.central_mass = mass;
      disk.disk_mass = numbers.mass(given.disk_mass, "initial.disk_mass");
      disk.inner_radius = numbers.length(given.inner_radius, "initial.inner_radius");
      disk.outer_radius = radius;
      disk.surface_density_slope = given.surface_density_slope;
      disk.eccentricity = given.eccentricity;
      disk.inclination = given.inclination;
      return make_kepler_disk(disk, ranks);
    }
    case InitialKind::kTwoBody:
      return make_two_body({mass, numbers.mass(given.second_mass, "initial.second_mass"), radius, given.eccentricity},
                           ranks);
    default: throw std::logic_error("not an isolated model");
  }
}

}  // namespace

Snapshot make_cosmological_set(const Config& config, const UnitSystem& units, const Communicator& ranks) {
  const bool pancake = config.initial.kind == InitialKind::kPancake;
  return pancake ? make_pancake_set(config, units, ranks) : make_lpt(config, units, ranks);
}

Snapshot make_isolated_set(const Config& config, const UnitSystem& units, const Communicator& ranks) {
  Snapshot set = make_model(config.initial, {config, units}, ranks);
  const double constant = run_gravitational_constant(config, units, nullptr);
  const auto scale = static_cast<float>(std::sqrt(constant));  // models are made with G = 1
  for (auto& velocity : set.velocities) {
    for (float& component : velocity) component *= scale;
  }
  set.header.units = units;
  set.header.gravitational_constant = constant;
  return set;
}

}  // namespace maki
