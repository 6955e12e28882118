#include "src/config/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "kernels/error.hpp"
#include "kernels/tree/opening.hpp"
#include "src/config/keys.hpp"

namespace maki {
namespace {

using enum Assignment;
using enum Interlacing;
using enum Gradient;

// ---- presets --------------------------------------------------------------------------------------------------------

// Chosen by force error against time, as measured by bench/bench_accuracy. With 1.5 cells a spacing a lattice's
// particles are at only two places in cells, whose errors add up to -1.7e-3 of the force at the lattice's Nyquist wave
// number in large boxes; 1.53 makes 49 cells to 32 particles.
constexpr std::array kPresets = {
    //            preset             theta early n  r_cut mesh assign interl. gradient   root   reuse  eta  dlna  long
    PresetNumbers{Preset::kFast, 0.8, 0.4, 3, 2.48, 1.5, kPcs, kFull, kAnalytic, false, 1.5, 0.50, 0.08, 0.04},
    PresetNumbers{Preset::kStandard, 0.7, 0.3, 4, 2.95, 1.53, kPcs, kFull, kAnalytic, false, 1.5, 0.30, 0.08, 0.02},
    PresetNumbers{Preset::kPrecise, 0.35, 0.2, 6, 5.0, 1.5, kPcs, kFull, kSpectral, true, 1.2, 0.15, 0.02, 0.01},
};

struct ErrorNumbers {
  // largest rms error over rms force, for 50 to 1000 Mpc/h and z = 49 to 0, with kept lists; the last row reaches
  // 1.3e-4
  double error;
  double theta, theta_early;
  int split_order;
  double r_cut;
  Gradient gradient;
  bool refine_root;
  double theta_isolated;  // of a Plummer sphere and a uniform sphere, opened by estimated error
};

// Loosest first.
constexpr std::array kErrors = {
    //           error   theta early n  r_cut gradient   root   isolated
    ErrorNumbers{2.4e-3, 0.8, 0.4, 3, 2.48, kAnalytic, false, 0.9},
    ErrorNumbers{1.9e-3, 0.7, 0.3, 4, 2.85, kAnalytic, false, 0.9},
    ErrorNumbers{1e-3, 0.7, 0.3, 4, 2.85, kAnalytic, true, 0.8},
    ErrorNumbers{4.2e-4, 0.6, 0.25, 5, 3.5, kAnalytic, true, 0.55},
    ErrorNumbers{2.8e-4, 0.5, 0.2, 5, 4.0, kAnalytic, true, 0.5},
    ErrorNumbers{2.3e-4, 0.4, 0.2, 6, 4.5, kSpectral, true, 0.5},
    ErrorNumbers{kLeastForceError, 0.25, 0.15, 8, 7.5, kSpectral, true, 0.4},
};
constexpr double kReuseTolerance = 1.2;     // error of kept lists over that of fresh ones
constexpr double kMeshFactor = 1.5;         // cells a particle spacing
constexpr double kFastCutElsewhere = 2.56;  // r_cut of `fast` with other meshes: its 2.48 is right for 1.5 cells alone

// The keys that resolve_presets() chooses.
constexpr const char* kChosenKeys[] = {"gravity.theta",           "gravity.theta_early", "gravity.opening",
                                       "gravity.reuse_tolerance", "gravity.split",       "gravity.split_order",
                                       "gravity.r_cut",           "gravity.mesh",        "gravity.assignment",
                                       "gravity.interlacing",     "gravity.gradient",    "time.eta",
                                       "time.max_dlna",           "time.long_dlna",      "output.error_targets"};

template <class T, class U>
void fill(Auto<T>& field, U value) {
  if (!field) field = static_cast<T>(value);
}

// The gradient of CIC's cloud jumps between cells: forces are off by 2 to 4 %.
bool gradient_jumps(Assignment assignment, Gradient gradient) { return assignment == kCic && gradient == kAnalytic; }

void fill_mesh(Config::Gravity& gravity, const PresetNumbers& numbers, std::uint64_t particles) {
  fill(gravity.split, Split::kPolynomial);
  fill(gravity.split_order, numbers.split_order);
  fill(gravity.r_cut, *gravity.split == Split::kS2 ? 3.0 : numbers.r_cut);
  fill(gravity.assignment, numbers.assignment);
  fill(gravity.interlacing, numbers.interlacing);
  fill(gravity.gradient, gradient_jumps(*gravity.assignment, numbers.gradient) ? kFourPoint : numbers.gradient);
  if (gravity.mesh) return;
  const double per_side = std::cbrt(static_cast<double>(particles));
  const std::int64_t least = good_mesh(std::max(*gravity.r_cut / kMaxReach + 0.1, 8.0));
  gravity.mesh = std::max(force_mesh(numbers.mesh_factor, per_side), least);
}

// ---- units, and the cosmology of a file -----------------------------------------------------------------------------

// A unit given by the user, in cgs. Throws Error where a length or mass carries 1/h unlike those of the run.
double unit_in_cgs(const Quantity& quantity, Dimension dimension, bool with_h) {
  const Unit* unit = find_unit(quantity.unit, dimension);
  if (unit != nullptr && dimension != Dimension::kVelocity && unit->over_h != with_h) {
    throw Error(
        fmt::format("the run cannot have the unit '{}'", to_string(quantity)),
        with_h ? "lengths and masses of a cosmological run carry 1/h" : "an isolated run knows no h",
        with_h ? "give a unit with /h, such as \"1 kpc/h\" and \"1e10 Msun/h\"; output.layout = \"swift\" writes files "
                 "without h"
               : "give a unit without /h, such as \"1 kpc\" and \"1e10 Msun\"");
  }
  return in_base(quantity, dimension, "");
}

UnitSystem isolated_units(const Config::Units& given) {
  if (!given.length && !given.mass && !given.velocity) return {1, 1, 1, false};
  if (!given.length || !given.mass || given.length->unit.empty() || given.mass->unit.empty()) {
    throw Error("units.length and units.mass go together", "only one of them was given, or one without a unit",
                "set both, such as units.length = \"1 kpc\" and units.mass = \"1e10 Msun\"");
  }
  UnitSystem units;
  units.length_cgs = unit_in_cgs(*given.length, Dimension::kLength, false);
  units.mass_cgs = unit_in_cgs(*given.mass, Dimension::kMass, false);
  units.velocity_cgs = 1;
  units.with_h = false;
  // G scales with the inverse square of the velocity unit: this unit makes it 1.
  units.velocity_cgs = given.velocity ? unit_in_cgs(*given.velocity, Dimension::kVelocity, false)
                                      : std::sqrt(units.gravitational_constant());
  return units;
}

UnitSystem cosmological_units(const Config::Units& given) {
  UnitSystem units;
  if (given.length) units.length_cgs = unit_in_cgs(*given.length, Dimension::kLength, true);
  if (given.mass) units.mass_cgs = unit_in_cgs(*given.mass, Dimension::kMass, true);
  if (given.velocity) units.velocity_cgs = unit_in_cgs(*given.velocity, Dimension::kVelocity, true);
  return units;
}

// Takes the file's value, unless it is `unknown`, where the user gave none; adds a note where the two differ.
void take_from_file(Auto<double>& field, double file_value, const char* key, std::vector<std::string>& notes,
                    double unknown = 0) {
  if (file_value == unknown) return;
  if (!field) {
    field = file_value;
  } else if (std::abs(*field - file_value) > 1e-6 * std::abs(file_value)) {
    notes.push_back(fmt::format("{} = {} overrides the file's {}.", key, *field, file_value));
  }
}

}  // namespace

// ---- values of presets ----------------------------------------------------------------------------------------------

const PresetNumbers& preset_numbers(Preset preset) { return kPresets[static_cast<std::size_t>(preset)]; }

namespace {

std::int64_t even_above(double least) { return static_cast<std::int64_t>(std::ceil(least / 2)) * 2; }

std::int64_t largest_prime_of(std::int64_t number) {
  std::int64_t prime = 2;
  for (; number > 1; ++prime)
    while (number % prime == 0) number /= prime;
  return prime - 1;
}

}  // namespace

std::int64_t good_mesh(double least) {
  std::int64_t cells = even_above(least);
  while (largest_prime_of(cells) > 7) cells += 2;
  return cells;
}

std::int64_t force_mesh(double factor, double per_side) {
  constexpr double kRounding = 1e-6, kWide = 0.03, kWidest = 0.0625;  // cells a spacing beyond 1.5
  const double fewest = kMeshFactor * per_side - kRounding;
  const std::int64_t usual = good_mesh(factor * per_side - kRounding);
  if (static_cast<double>(usual) <= fewest + (factor > kMeshFactor ? kWidest : kWide) * per_side + 2 * kRounding)
    return usual;
  std::int64_t best = even_above(fewest);
  for (std::int64_t cells = best; static_cast<double>(cells) <= fewest + kWide * per_side; cells += 2)
    if (largest_prime_of(cells) < largest_prime_of(best)) best = cells;
  return best;
}

namespace {

// The longest step in ln a for the factors of kicks and drifts that time.growth_exact chooses.
double preset_max_dlna(const Config& config) {
  const PresetNumbers& numbers = preset_numbers(config.run.preset);
  return config.time.growth_exact ? numbers.max_dlna : numbers.long_dlna;
}

// Whether the particles are no lattice, or one whose mesh can have 1.5 cells a spacing.
bool suits_mesh(std::uint64_t particles) {
  const auto side = static_cast<std::uint64_t>(std::llround(std::cbrt(static_cast<double>(particles))));
  return side * side * side != particles ||
         2 * force_mesh(kMeshFactor, static_cast<double>(side)) == static_cast<std::int64_t>(3 * side);
}

}  // namespace

PresetNumbers numbers_of(const Config& config, std::uint64_t particles) {
  PresetNumbers numbers = preset_numbers(config.run.preset);
  const bool odd_mesh = config.run.kind == RunKind::kCosmology && !suits_mesh(particles);
  if (!config.gravity.error) {
    if (odd_mesh && config.run.preset == Preset::kFast) numbers.r_cut = kFastCutElsewhere;
    return numbers;
  }
  const auto good = [&](const ErrorNumbers& row) { return row.error <= *config.gravity.error; };
  auto place = std::ranges::find_if(kErrors, good) - kErrors.begin();
  if (odd_mesh) place = std::min<std::ptrdiff_t>(place + 2, kErrors.size() - 1);
  const ErrorNumbers& row = kErrors[static_cast<std::size_t>(place)];
  numbers.theta = row.theta;
  if (config.run.kind == RunKind::kIsolated)
    numbers.theta = row.theta_isolated * (config.gravity.opening == Opening::kAngle ? kAngleAsGood : 1);
  numbers.theta_early = row.theta_early;
  numbers.split_order = row.split_order;
  numbers.r_cut = row.r_cut;
  numbers.mesh_factor = kMeshFactor;
  numbers.gradient = row.gradient;
  numbers.refine_root = row.refine_root;
  numbers.reuse_tolerance = kReuseTolerance;
  return numbers;
}

void resolve_presets(Config& config, std::uint64_t particles) {
  if (config.run.kind == RunKind::kIsolated) {
    // Error estimates need quadrupoles. A restart has no accelerations, and runs with these keys have to resume with
    // the same bits.
    const bool by_angle = !config.gravity.quadrupoles || config.gravity.method == Method::kDirect ||
                          config.run.deterministic || config.gravity.reuse;
    fill(config.gravity.opening, by_angle ? Opening::kAngle : Opening::kError);
  }
  const PresetNumbers numbers = numbers_of(config, particles);
  fill(config.output.error_targets, config.gravity.error ? kErrorTargets : 0);
  fill(config.gravity.theta, numbers.theta);
  fill(config.gravity.reuse_tolerance, numbers.reuse_tolerance);
  fill(config.time.eta, numbers.eta);
  if (config.run.kind == RunKind::kIsolated) return;
  fill(config.gravity.theta_early, std::min(*config.gravity.theta, numbers.theta_early));
  fill(config.time.max_dlna, preset_max_dlna(config));
  fill(config.time.long_dlna, numbers.long_dlna);
  fill_mesh(config.gravity, numbers, particles);
}

void choose_again(Config& config, const Config& before, std::uint64_t particles) {
  const auto free = [](Config& all, auto may) {
    for (const char* path : kChosenKeys)
      if (const Key& key = find_key(path); may(key)) key.set(key, all, std::string("auto"));
  };
  Config chosen = before;
  free(chosen, [](const Key&) { return true; });
  resolve_presets(chosen, particles);
  free(config,
       [&](const Key& key) { return key.get(config) == key.get(before) && key.get(before) == key.get(chosen); });
}

// ---- resolution -----------------------------------------------------------------------------------------------------

void resolve_cosmology(Config::Cosmology& cosmology, const SnapshotHeader* file, std::vector<std::string>& notes) {
  if (file != nullptr) {
    take_from_file(cosmology.omega0, file->omega0, "cosmology.omega0", notes);
    // No Lambda is a valid value where the file has a cosmology.
    if (file->omega0 > 0 && file->omega_lambda == 0 && !cosmology.omega_lambda) cosmology.omega_lambda = 0.0;
    take_from_file(cosmology.omega_lambda, file->omega_lambda, "cosmology.omega_lambda", notes);
    take_from_file(cosmology.omega_radiation, file->omega_radiation, "cosmology.omega_radiation", notes);
    take_from_file(cosmology.w0, file->w0, "cosmology.w0", notes, -1);
    take_from_file(cosmology.wa, file->wa, "cosmology.wa", notes);
    take_from_file(cosmology.omega_baryon, file->omega_baryon, "cosmology.omega_baryon", notes);
    take_from_file(cosmology.hubble_param, file->hubble, "cosmology.hubble_param", notes);
    if (!cosmology.omega0) {
      throw Error("the file has no cosmology", "no Omega0", "set cosmology.omega0 and cosmology.hubble_param");
    }
  }
  const Background standard;
  if (!cosmology.omega0) cosmology.omega0 = standard.omega0;
  if (!cosmology.omega_radiation) cosmology.omega_radiation = standard.omega_radiation;
  if (!cosmology.omega_lambda) cosmology.omega_lambda = 1 - *cosmology.omega0 - *cosmology.omega_radiation;
  if (!cosmology.w0) cosmology.w0 = standard.w0;
  if (!cosmology.wa) cosmology.wa = standard.wa;
  if (!cosmology.omega_baryon) cosmology.omega_baryon = standard.omega_baryon;
  if (!cosmology.hubble_param) cosmology.hubble_param = standard.hubble;
}

namespace {

void resolve_box(Config& config, const InitialFacts& facts, const UnitSystem& units) {
  Auto<Quantity>& size = config.box.size;
  const bool cosmological = config.run.kind == RunKind::kCosmology;
  const double given = size ? number_of(*size, "box.size", config, units) : 0;
  const double file_size = cosmological && facts.file != nullptr ? facts.file->box_size : facts.isolated_side;
  if (cosmological && given > 0 && file_size > 0 && std::abs(given - file_size) > 1e-6 * file_size) {
    throw Error(fmt::format("box.size is {}, but the file's box is {}", to_string(*size), file_size), "",
                "leave box.size out to take the file's");
  }
  if (!cosmological && given > 0 && given < file_size) {
    throw Error(fmt::format("box.size = {} is too small", to_string(*size)),
                "the set has to lie in the middle half of the box",
                fmt::format("leave it out, or give at least {}", file_size));
  }
  if (given > 0) return;
  if (file_size <= 0)
    throw Error("box.size is not set", "nothing else says how large the box is", "set it, such as \"50 Mpc/h\"");
  if (!cosmological) {
    size = Quantity{file_size, ""};
    return;
  }
  const double mpc = file_size * (units.length_cgs / kMpcCgs);
  size = units.with_h ? Quantity{mpc, "Mpc/h"} : Quantity{mpc, "Mpc"};
}

// A thirtieth of the mean distance, in a zoom of that of its light particles.
void resolve_softening(Config& config, const InitialFacts& facts, const UnitSystem& units,
                       std::vector<std::string>& notes) {
  if (config.gravity.softening) return;
  if (config.run.kind == RunKind::kIsolated) {
    throw Error("gravity.softening is not set", "isolated sets have no natural one",
                "set it, such as gravity.softening = 0.01");
  }
  const auto n = static_cast<double>(facts.particles);
  const bool mixed = facts.lightest > 2 * n;
  const double spacing = number_of(*config.box.size, "box.size", config, units) /
                         std::cbrt(mixed && facts.mostly_light ? facts.lightest : n);
  const double kpc = spacing / 30 * (units.length_cgs / kMpcCgs) * 1e3;
  config.gravity.softening = Quantity{kpc, units.with_h ? "kpc/h" : "kpc"};
  if (mixed && facts.mostly_light)
    notes.push_back("gravity.softening is 1/30 of the mean distance of particles as light as the lightest.");
  else if (mixed)
    notes.push_back(
        "Warning: gravity.softening is 1/30 of the mean distance of all particles, and some are lighter than most: set "
        "it for a zoom.");
}

// Throws Error where a subset has less than one expected particle; as IDs choose it, the number scatters.
void check_subset(const Config& config, std::uint64_t particles) {
  const double expected = config.output.subset * static_cast<double>(particles);
  if (config.output.subset >= 1 || expected >= 1) return;
  throw Error(fmt::format("output.subset = {} leaves none of {} particles", config.output.subset, particles),
              "snapshots would be empty", fmt::format("take {:.3g} or more", 10 / static_cast<double>(particles)));
}

void shorten(Auto<double>& field, double wanted, const char* key, const std::string& reason,
             std::vector<std::string>& notes) {
  if (!field) field = wanted;
  if (*field <= wanted * (1 + 1e-9)) return;
  notes.push_back(
      fmt::format("Warning: {} = {} is long for {}, and its passages may spoil that; leave {} out (auto: {:.3g})", key,
                  *field, reason, key, wanted));
}

// Default steps suit many particles, where no single pair matters. A pair as close as the softening has this part of
// the potential energy of all particles on a lattice; the energy error of its passage scales as the square of steps.
// Heavy particles among many have only eta shortened: the others' mean motion needs no shorter steps.
void shorten_steps_of_few(Config& config, const InitialFacts& facts, const UnitSystem& units,
                          std::vector<std::string>& notes) {
  constexpr double kLattice = 2.837;     // |potential| of a particle of a cubic lattice, in mass over spacing
  constexpr double kLargestPart = 0.01;  // energy errors stay below about this, as with 16^3 particles
  constexpr double kLeastOfHeavy = 0.1;  // of the preset's eta: steps are shortest then only where the heavy ones meet
  if (config.time.fixed_step) return;
  const double side = number_of(*config.box.size, "box.size", config, units);
  const double softening = number_of(*config.gravity.softening, "gravity.softening", config, units);
  const auto part_of = [&](double n) { return 2 * side / std::cbrt(n) / (kLattice * n * softening); };
  const auto factor_of = [](double part) { return std::min(1.0, std::sqrt(kLargestPart / part)); };
  const auto n = static_cast<double>(facts.particles);
  const PresetNumbers& numbers = preset_numbers(config.run.preset);
  const double part = part_of(n), factor = factor_of(part);
  double eta_factor = factor;
  std::string reason = fmt::format("{} particles: one close pair has {:.0f} % of the potential energy of all",
                                   facts.particles, 100 * part);
  if (facts.alike > 0 && facts.alike < n) {
    const double heavy = part_of(facts.alike);
    eta_factor = std::min(factor, std::max(factor_of(heavy), kLeastOfHeavy));
    if (eta_factor < factor)
      reason = fmt::format(
          "{} particles with the mass of {:.0f} of the heavy ones: a close pair of these has {:.0f} % of "
          "the potential energy of all",
          facts.particles, facts.alike, 100 * heavy);
    if (eta_factor < factor && !config.time.eta)
      notes.push_back(fmt::format("time.eta = {:.3g} instead of {:.3g} for {}", eta_factor * numbers.eta,
                                  factor * numbers.eta, reason));
  }
  if (eta_factor < 1) shorten(config.time.eta, eta_factor * numbers.eta, "time.eta", reason, notes);
  if (factor == 1) return;
  shorten(config.time.max_dlna, factor * preset_max_dlna(config), "time.max_dlna", reason, notes);
  shorten(config.time.long_dlna, factor * numbers.long_dlna, "time.long_dlna", reason, notes);
}

}  // namespace

UnitSystem run_units(const Config& config, const SnapshotHeader* file) {
  if (file != nullptr) return file->units;
  return config.run.kind == RunKind::kIsolated ? isolated_units(config.units) : cosmological_units(config.units);
}

double run_gravitational_constant(const Config& config, const UnitSystem& units, const SnapshotHeader* file) {
  if (config.run.kind == RunKind::kCosmology) return units.gravitational_constant();
  if (config.units.gravitational_constant) return *config.units.gravitational_constant;
  if (file != nullptr && file->gravitational_constant > 0) return file->gravitational_constant;
  return pure_numbers(units) ? 1.0 : units.gravitational_constant();
}

CosmologyParameters cosmology_parameters(const Config& config) {
  const Config::Cosmology& given = config.cosmology;
  CosmologyParameters parameters;
  parameters.omega0 = given.omega0.value();
  parameters.omega_lambda = given.omega_lambda.value();
  parameters.omega_baryon = given.omega_baryon.value();
  parameters.hubble = given.hubble_param.value();
  parameters.omega_radiation = given.omega_radiation.value();
  parameters.w0 = given.w0.value();
  parameters.wa = given.wa.value();
  parameters.sigma8 = given.sigma8;
  parameters.n_s = given.n_s;
  return parameters;
}

PowerOptions power_options(const Config& config) {
  const Config::Cosmology& from = config.cosmology;
  return {.model = from.transfer,
          .table_file = from.transfer_table,
          .table_redshift = from.table_redshift,
          .power_law_index = from.power_law_index};
}

double number_of(const Quantity& quantity, const char* key_path, const Config& config, const UnitSystem& units) {
  const Key& key = find_key(key_path);
  if (key.dimension == Dimension::kWallTime || key.dimension == Dimension::kMemory) {
    return in_base(quantity, key.dimension, key.plain_unit);
  }
  const bool isolated = config.run.kind == RunKind::kIsolated;
  const double h = config.cosmology.hubble_param.value_or(1.0);
  const Unit* unit = find_unit(quantity.unit, key.dimension);
  if (isolated && !units.with_h && !pure_numbers(units) && unit != nullptr && unit->over_h)
    throw Error(fmt::format("{}: '{}' carries 1/h", key_path, to_string(quantity)), "an isolated run knows no h",
                "give a unit without /h, such as \"1 kpc\" and \"1e10 Msun\"");
  return at_place(key_path,
                  [&] { return in_units(quantity, key.dimension, isolated ? "" : key.plain_unit, units, h); });
}

TimeUnit time_unit(const Config& config, const UnitSystem& units) {
  const std::string& name = config.time.end_time.unit;
  if (name.empty()) return {1, unit_name(units, Dimension::kTime)};
  return {number_of({1, name}, "time.end_time", config, units), name};
}

std::vector<double> output_times(const Config& config, const UnitSystem& units) {
  constexpr double kRounding = 1e-9;
  std::vector<double> times;
  for (const Quantity& time : config.output.times) times.push_back(number_of(time, "output.times", config, units));
  if (!config.output.interval) return times;
  const double end = number_of(config.time.end_time, "time.end_time", config, units);
  const double interval = number_of(*config.output.interval, "output.interval", config, units);
  const double count = end / interval * (1 + kRounding);
  if (!(count < kMostIntervals))
    throw Error(fmt::format("output.interval = {} makes {:.3g} snapshots until {}", to_string(*config.output.interval),
                            count, to_string(config.time.end_time)),
                fmt::format("fewer than {:g} are possible", kMostIntervals), "give a longer one");
  for (int i = 0; i <= static_cast<int>(count); ++i) times.push_back(i * interval);
  return times;
}

void resolve(Config& config, const InitialFacts& facts, std::vector<std::string>& notes) {
  check_kinds(config);
  if (!config.run.output_directory) config.run.output_directory = "output/" + config.run.name;
  // A run may be resumed elsewhere.
  if (config.run.machine) config.run.machine = std::filesystem::absolute(*config.run.machine).string();
  if (std::string& table = config.cosmology.transfer_table; !table.empty())
    table = std::filesystem::absolute(table).string();
  const bool cosmological = config.run.kind == RunKind::kCosmology;
  if (facts.file != nullptr && facts.file->comoving != cosmological) {
    throw Error(fmt::format("run.kind is \"{}\", but '{}' is {}", name_of(config.run.kind), config.initial.file,
                            cosmological ? "an isolated set" : "a comoving box"),
                "", fmt::format("set run.kind = \"{}\"", cosmological ? "isolated" : "cosmology"));
  }
  if (facts.file == nullptr) fill(config.initial.redshift, kUsualRedshift);
  if (cosmological) resolve_cosmology(config.cosmology, facts.file, notes);
  const UnitSystem units = run_units(config, facts.file);
  resolve_box(config, facts, units);
  resolve_softening(config, facts, units, notes);
  if (cosmological) shorten_steps_of_few(config, facts, units, notes);
  resolve_presets(config, facts.particles);
  check_numbers(config, units, facts.file);
  if (cosmological && gradient_jumps(*config.gravity.assignment, *config.gravity.gradient))
    notes.push_back(
        "Warning: gravity.gradient = \"analytic\" of gravity.assignment = \"cic\" jumps between cells: forces "
        "are off by 2 to 4 %. Take another gradient, or the assignment \"tsc\" or \"pcs\".");
  check_subset(config, facts.particles);
}

}  // namespace maki
