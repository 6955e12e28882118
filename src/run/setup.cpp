#include "src/run/setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "host/comm/job.hpp"
#include "host/let/local_essential_tree.hpp"
#include "kernels/device/device.hpp"
#include "kernels/tree/octree.hpp"
#include "src/config/resolve.hpp"
#include "src/cosmology/power.hpp"
#include "src/ic/lagrangian.hpp"
#include "src/ic/models.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/simulation/film.hpp"
#include "src/simulation/frame.hpp"
#include "wan/sites/site_mesh.hpp"

namespace maki {
namespace {

// ---- initial conditions ---------------------------------------------------------------------------------------------

PowerSpectrum linear_power(const Config& config, const UnitSystem& units) {
  return PowerSpectrum(power_options(config), cosmology_parameters(config), units);
}

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

bool has_units(const Config::Units& given) { return given.length || given.mass || given.velocity; }

// Throws Error where the configuration gives other units than those of a set that has its own. `set` names it.
void require_units(const Config& config, const SnapshotHeader& header, const std::string& set) {
  if (has_units(config.units) && run_units(config, nullptr) != header.units)
    throw Error(set + " has its own units",
                "units.length, units.mass and units.velocity are for sets whose file states none", "leave them out");
}

// The units of a set whose file states none: those of the configuration. Where it gives none, those that fit the mean
// density of a comoving set; for an isolated one pure numbers where only Newton's constant is given, else GADGET's
// usual ones, with a warning.
void settle_units(const Config& config, const ReadReport& report, SnapshotHeader& header,
                  std::vector<std::string>& notes) {
  const Config::Units& given = config.units;
  const std::string file = fmt::format("'{}'", config.initial.file);
  if (header.comoving && !report.has_units && has_units(given) && config.run.kind == RunKind::kCosmology) {
    header.units = run_units(config, nullptr);
    return notes.push_back("units.length, units.mass and units.velocity hold for the file, which states none.");
  }
  if (header.comoving && !report.has_units && header.omega0 == 0 && config.cosmology.omega0) {
    std::erase(notes, choose_length_unit(header, report.mass));  // the reader's choice, without a mean density
    SnapshotHeader with_density = header;
    with_density.omega0 = *config.cosmology.omega0;
    notes.push_back(choose_length_unit(with_density, report.mass));
    header.units = with_density.units;
  }
  if (report.has_units) return require_units(config, header, file);
  if (header.comoving) return;
  if (has_units(given) && !given.velocity)
    throw Error("units.velocity is missing", file + " holds velocities and states no units",
                "give length, mass and velocity, such as \"1 kpc\", \"1e10 Msun\" and \"1 km/s\"");
  if (has_units(given) || given.gravitational_constant) {
    header.units = run_units(config, nullptr);
  } else if (header.gravitational_constant == 0) {
    notes.push_back(
        fmt::format("Warning: the file states no units: Mpc, 1e10 Msun and km/s are assumed, and G = {:.4f} "
                    "(set units.length, units.mass and units.velocity, or units.gravitational_constant)",
                    header.newton()));
  } else {
    header.units = {1, 1, 1, false};
  }
}

// InitialFacts::alike.
double alike_in(const Snapshot& share, const Communicator& ranks) {
  const auto add = [](std::array<float, 2>& most, float mass) {  // the heaviest and the second heaviest
    if (mass > most[0]) std::swap(mass, most[0]);
    most[1] = std::max(most[1], mass);
  };
  std::array<float, 2> mine{}, all{};
  for (const float mass : share.masses) add(mine, mass);
  for (const auto& [first, second] : gathered(ranks, mine)) add(all, first), add(all, second);
  return all[1] > 0 ? std::round(total_mass(share, ranks) / static_cast<double>(all[1])) : 1;
}

// Sets InitialFacts::lightest and mostly_light.
void count_light(const Snapshot& share, const Communicator& ranks, InitialFacts& facts) {
  constexpr float kSameKind = 2;  // masses to this factor are of one kind
  float least = std::numeric_limits<float>::max();
  for (const float mass : share.masses) least = std::min(least, mass);
  for (const float mass : gathered(ranks, least)) least = std::min(least, mass);
  if (!(least > 0) || facts.particles == 0) return;
  const auto light = std::ranges::count_if(share.masses, [&](float mass) { return mass <= kSameKind * least; });
  facts.lightest = std::round(total_mass(share, ranks) / static_cast<double>(least));
  facts.mostly_light = sum_of(ranks, static_cast<std::uint64_t>(light)) >= (facts.particles + 1) / 2;
}

void finish(Prepared& run, const InitialFacts& facts) {
  Config& config = run.config;
  const SnapshotHeader* file = facts.file;
  const std::vector<std::string> idle = idle_keys(config);
  run.notes.insert(run.notes.end(), idle.begin(), idle.end());
  resolve(config, facts, run.notes);
  run.units = run_units(config, file);
  run.gravitational_constant = run_gravitational_constant(config, run.units, file);
  run.side = number_of(*config.box.size, "box.size", config, run.units);
  const bool comoving = config.run.kind == RunKind::kCosmology;
  if (comoving) run.centre.fill(run.side / 2);
  run.start_redshift = !comoving ? 0 : file != nullptr ? file->redshift : *config.initial.redshift;
  check_resolution(start_softening(run), run.side);
}

// The side is a little more than four times the reach, so that no particle is on the edge of the middle half.
double side_of(double reach) { return std::exp2(std::ceil(std::log2(4.01 * reach))); }

double distance_from(const std::array<double, 3>& centre, const std::array<double, 3>& position) {
  double distance = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) distance = std::max(distance, std::fabs(position[axis] - centre[axis]));
  return distance;
}

// Where the softening is too small for a box around all particles: replaces `box` by one around all but a few, at most
// the fraction kMostAside. The run begins with these few set aside; run.aside is their number.
constexpr double kMostAside = 0.1;
void leave_far_particles(Prepared& run, IsolatedBox& box, const UnitSystem& units, const Communicator& ranks) {
  const Config& config = run.config;
  if (config.box.size || !config.gravity.softening || !config.sites.ring.empty()) return;
  const double largest =
      number_of(*config.gravity.softening, "gravity.softening", config, units) * kSideToUnits / kLeastSofteningUnits;
  if (!(largest > 0) || box.side <= largest) return;
  const std::array<double, 3> centre = median_of(run.initial, ranks);
  const double most = 0.24 * std::exp2(std::floor(std::log2(largest)));  // within the middle half
  double reach = 0;
  std::uint64_t far = 0;
  for (const auto& position : run.initial.positions) {
    const double distance = distance_from(centre, position);
    if (distance > most)
      ++far;
    else
      reach = std::max(reach, distance);
  }
  reach = largest_of(ranks, reach);
  far = sum_of(ranks, far);
  if (static_cast<double>(far) > kMostAside * static_cast<double>(run.particles)) return;
  box = {side_of(reach > 0 ? reach : most), centre};
  run.aside = far;
}

void note_tight_pairs(Prepared& run) {
  const Config::Gravity& gravity = run.config.gravity;
  const double softening = number_of(*gravity.softening, "gravity.softening", run.config, run.units);
  if (gravity.method != Method::kTree || softening >= kTightPair * run.side || run.particles < 3) return;
  run.notes.push_back(note_of_tight_pairs(run.side));
}

// Of a file that tells its own.
void note_redshift(Prepared& run) {
  const auto given = run.config.initial.redshift;
  const SnapshotHeader& header = run.initial.header;
  if (!header.comoving || !given || std::abs(*given - header.redshift) <= 1e-3 * (1 + *given)) return;
  run.notes.push_back(
      fmt::format("initial.redshift = {} has no effect: the file is of z = {:.6g}.", *given, header.redshift));
}

Prepared prepare_set(Config config, Snapshot share, bool from_file, const Communicator& ranks) {
  Prepared run;
  run.config = std::move(config);
  run.initial = std::move(share);
  run.particles = sum_of(ranks, std::uint64_t{run.initial.size()});
  if (from_file) note_redshift(run);
  IsolatedBox box;
  if (!run.initial.header.comoving) {
    box = isolated_box(run.initial, ranks);
    leave_far_particles(run, box, run_units(run.config, from_file ? &run.initial.header : nullptr), ranks);
  }
  run.centre = box.centre;
  InitialFacts facts{run.particles, from_file ? &run.initial.header : nullptr, box.side, alike_in(run.initial, ranks)};
  count_light(run.initial, ranks, facts);
  finish(run, facts);
  SnapshotHeader& header = run.initial.header;
  if (!header.comoving) {
    header.gravitational_constant = run.gravitational_constant;
    header.box_size = 0;  // of the file: particles may leave it
    note_tight_pairs(run);
    return run;
  }
  const CosmologyParameters cosmology = cosmology_parameters(run.config);  // the user may override the file's
  header.omega0 = cosmology.omega0;
  header.omega_lambda = cosmology.omega_lambda;
  header.omega_baryon = cosmology.omega_baryon;
  header.hubble = cosmology.hubble;
  return run;
}

// A message where the initial conditions have waves beyond those of the table of their spectrum.
void note_table(Prepared& run) {
  if (run.config.initial.kind != InitialKind::kLpt) return;
  const auto range = linear_power(run.config, run.units).table_range();
  const double longest = 2 * std::numbers::pi / run.side;
  const double shortest = std::sqrt(3) * longest * static_cast<double>((run.config.initial.particles_per_side - 1) / 2);
  if (!range || (range->first <= longest * (1 + 1e-6) && range->second >= shortest * (1 - 1e-6))) return;
  run.notes.push_back(
      fmt::format("Warning: the box has waves of k = {:.3g} to {:.3g} in 1 / length unit, and {} has {:.3g} to {:.3g}: "
                  "beyond, the spectrum is extrapolated by the slope at the table's end. Give a wider table.",
                  longest, shortest, run.config.cosmology.transfer_table, range->first, range->second));
}

Prepared prepare_cosmological(Config config, bool with_particles, const Communicator& ranks) {
  Prepared run;
  run.config = std::move(config);
  const auto side = static_cast<std::uint64_t>(run.config.initial.particles_per_side);
  run.particles = side * side * side;
  finish(run, {run.particles});
  note_table(run);
  if (with_particles) run.initial = make_cosmological_set(run.config, run.units, ranks);
  return run;
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

Prepared prepare(Config config, bool with_particles, const Communicator& ranks) {
  check_kinds(config);
  if (config.initial.kind == InitialKind::kFile) {
    ReadReport report;
    const KnownOfSet known{config.run.kind == RunKind::kIsolated, config.initial.redshift};
    Snapshot share = read_snapshot(config.initial.file, &report, ranks, known);
    require_whole("a run cannot begin with", config.initial.file, report);
    if (config.run.kind == RunKind::kCosmology && !report.why_isolated.empty())
      throw Error(fmt::format("run.kind is \"cosmology\", but '{}' is an isolated set", config.initial.file),
                  report.why_isolated,
                  report.lacks_time ? "set run.kind = \"isolated\", or, where it is a comoving box, initial.redshift"
                                    : "set run.kind = \"isolated\", or repair the file's header");
    const double mass = report.mass;
    Prepared run = prepare(std::move(config), std::move(share), std::move(report), ranks);
    require_density(run.initial.header, mass);
    return run;
  }
  if (config.run.kind == RunKind::kCosmology) {
    return prepare_cosmological(std::move(config), with_particles, ranks);
  }
  Snapshot share = make_isolated_set(config, run_units(config, nullptr), ranks);
  return prepare_set(std::move(config), std::move(share), false, ranks);
}

namespace {

// By the user's cosmology; the reader may have said the same by the file's.
void note_density(Prepared& run, double mass) {
  const std::string density = density_note(run.initial.header, mass);
  if (!density.empty() && std::ranges::find(run.notes, density) == run.notes.end()) run.notes.push_back(density);
}

// Other types than 1 lose theirs.
void note_types(const ReadReport& report, std::vector<std::string>& notes) {
  std::vector<std::size_t> others;
  for (std::size_t type = 0; type < report.counts.size(); ++type)
    if (type != 1 && report.counts[type] > 0) others.push_back(type);
  if (others.empty()) return;
  notes.push_back(fmt::format("particles of type{} {} become type 1, with the same softening and steps as all{}",
                              others.size() > 1 ? "s" : "", fmt::join(others, ", "),
                              report.counts[0] > 0 ? ": gas moves by gravity alone" : ""));
}

}  // namespace

Prepared prepare(Config config, Snapshot share, ReadReport report, const Communicator& ranks) {
  note_types(report, report.notes);
  settle_units(config, report, share.header, report.notes);
  Prepared run = prepare_set(std::move(config), std::move(share), true, ranks);
  run.notes.insert(run.notes.begin(), report.notes.begin(), report.notes.end());
  note_density(run, report.mass);
  return run;
}

Prepared prepare(Config config, Snapshot share, const Communicator& ranks) {
  require_units(config, share.header, "the set");
  const double mass = total_mass(share, ranks);
  Prepared run = prepare_set(std::move(config), std::move(share), true, ranks);
  note_density(run, mass);
  return run;
}

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

int device_of(const Config& config) { return static_cast<int>(config.run.device.value_or(usual_device())); }

static int threads_of(const Config& config) {
  Communicator::world();  // determines this rank's share of its machine
  return static_cast<int>(config.run.threads.value_or(usual_threads()));
}

void use_device(const Config& config) {
  const int threads = threads_of(config);
  select_device(device_of(config), threads);
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
    for (const Quantity& time : config.output.times)
      options.outputs.push_back(number_of(time, "output.times", config, run.units));
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
