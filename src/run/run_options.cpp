#include "src/run/run_options.hpp"

#include <fmt/format.h>
#include <omp.h>

#include "host/comm/job.hpp"
#include "host/let/local_essential_tree.hpp"
#include "kernels/device/device.hpp"
#include "kernels/tree/octree.hpp"
#include "src/config/resolve.hpp"
#include "src/simulation/film.hpp"
#include "wan/sites/site_mesh.hpp"

namespace maki {

int device_of(const Config& config, const Communicator& ranks) {
  return config.run.device ? static_cast<int>(*config.run.device) : usual_device(ranks);
}

static int threads_of(const Config& config) {
  Communicator::world();  // determines this rank's share of its machine
  return static_cast<int>(config.run.threads.value_or(usual_threads()));
}

void use_device(const Config& config, const Communicator& ranks) {
  const int threads = threads_of(config);
  select_device(device_of(config, ranks), threads);
}

void use_threads(const Config& config) {
  if (const int threads = threads_of(config); threads > 0) omp_set_num_threads(threads);
}

// ---- options --------------------------------------------------------------------------------------------------------

double start_softening(const Prepared& run) {
  return softening_at(step_options(run.config, run.units), 1 / (1 + run.start_redshift));
}

std::string softening_text(const Prepared& run) {
  const std::string name = unit_name(run.units, Dimension::kLength), unit = (name.empty() ? "" : " ") + name;
  const double most = step_options(run.config, run.units).max_physical_softening;
  return fmt::format("softening {:g}{}{}", start_softening(run), unit,
                     most > 0 ? fmt::format(" (physical: at most {:g}{})", most, unit) : "");
}

ForceLaw force_law(const Prepared& run) {
  const Config& config = run.config;
  const double softening = start_softening(run) / run.side;
  const Config::Gravity& gravity = config.gravity;
  const bool periodic = config.run.kind == RunKind::kCosmology;
  ForceLaw law = periodic ? make_force_law(*gravity.split, static_cast<int>(*gravity.split_order),
                                           *gravity.r_cut / static_cast<double>(*gravity.mesh), gravity.softening_kind,
                                           softening, *gravity.r_cut)
                          : make_force_law(Split::kNone, 0, 0, gravity.softening_kind, softening);
  law.refine_root = numbers_of(config).refine_root;
  return law;
}

MeshOptions mesh_options(const Config& config) {
  if (config.run.kind == RunKind::kIsolated) return {};
  const Config::Gravity& gravity = config.gravity;
  std::int64_t auto_bits = 0;
  // Deterministic runs have the same bits for any number of sites.
  if (config.sites.ring.size() > 1 || config.run.deterministic)
    auto_bits = numbers_of(config).refine_root ? sites::kPreciseSiteMassBits : sites::kSiteMassBits;
  return {static_cast<int>(*gravity.mesh), *gravity.assignment, *gravity.gradient, *gravity.interlacing,
          static_cast<int>(gravity.mesh_mass_bits.value_or(auto_bits))};
}

GravityOptions gravity_options(const Prepared& run) {
  const Config& config = run.config;
  const Config::Gravity& given = config.gravity;
  GravityOptions options;
  options.periodic = config.run.kind == RunKind::kCosmology;
  options.direct = given.method == Method::kDirect;
  options.law = force_law(run);
  options.mesh = mesh_options(config);
  options.theta = *given.theta;
  options.open_by_error = !options.periodic && !options.direct && given.opening == Opening::kError;
  options.quadrupoles = given.quadrupoles;
  options.leaf_size = static_cast<std::uint32_t>(given.leaf_size);
  options.group_size = static_cast<std::uint32_t>(given.group_size);
  options.fixed_reuse = static_cast<int>(given.reuse.value_or(0));
  options.reuse_tolerance = *given.reuse_tolerance;
  options.deterministic = config.run.deterministic;
  options.let_compression = given.let_compression;
  options.boundary_move = config.sites.max_boundary_move;
  options.list_budget =
      given.list_memory
          ? static_cast<std::size_t>(number_of(*given.list_memory, "gravity.list_memory", config, run.units))
          : device_info().memory_free / 3;  // a first guess; runs replace it by list_budget() of estimate.hpp
  return options;
}

StepOptions step_options(const Config& config, const UnitSystem& units) {
  const auto number = [&](const Auto<Quantity>& quantity, const char* key) {
    return quantity ? number_of(*quantity, key, config, units) : 0.0;
  };
  const bool comoving = config.run.kind == RunKind::kCosmology;
  StepOptions options;
  options.eta = *config.time.eta;
  options.softening = number(config.gravity.softening, "gravity.softening");
  options.fixed_step = config.time.fixed_step.value_or(0);
  options.max_step = number(config.time.max_step, "time.max_step");
  if (!comoving) return options;
  options.max_dlna = *config.time.max_dlna;
  options.long_dlna = *config.time.long_dlna;
  options.by_newest = !config.run.deterministic;
  options.growth_exact = config.time.growth_exact;
  options.max_physical_softening = number(config.gravity.max_physical_softening, "gravity.max_physical_softening");
  options.r_cut =
      *config.gravity.r_cut / static_cast<double>(*config.gravity.mesh) * number(config.box.size, "box.size");
  return options;
}

int ghost_level(const Prepared& run) {
  const bool periodic = run.config.run.kind == RunKind::kCosmology;
  return run.config.run.deterministic && periodic ? whole_cell_level(run.particles, kPeriodicMinLevel) : 0;
}

Timeline timeline_of(const Prepared& run) {
  return run.config.run.kind == RunKind::kCosmology ? Timeline::comoving(cosmology_parameters(run.config), run.units)
                                                    : Timeline::newtonian();
}

SimulationOptions simulation_options(const Prepared& run) {
  const Config& config = run.config;
  SimulationOptions options;
  options.gravity = gravity_options(run);
  options.gravity.slabs = run.slabs;
  options.gravity.ghost_level = ghost_level(run);
  options.step_options = step_options(config, run.units);
  options.side = run.side;
  options.centre = run.centre;
  options.begins_aside = run.aside > 0;
  options.energy_interval = static_cast<int>(config.output.energy_interval);
  options.largest_error = config.gravity.error.value_or(0);
  options.error_targets = static_cast<std::uint64_t>(config.output.error_targets.value_or(0));
  options.theta_early = config.gravity.theta_early.value_or(0);
  if (config.run.kind == RunKind::kIsolated) {
    options.end = number_of(config.time.end_time, "time.end_time", config, run.units);
    options.outputs = output_times(config, run.units);
  } else {
    options.end = 1 / (1 + config.time.end_redshift);
    Cosmology(cosmology_parameters(config), run.units).require_expansion(run.initial.header.time, options.end);
    for (const double z : config.output.redshifts) options.outputs.push_back(1 / (1 + z));
  }
  options.film = film_times(static_cast<std::size_t>(config.output.film), config.output.film_cadence, timeline_of(run),
                            run.initial.header.time, options.end);
  return options;
}

}  // namespace maki
