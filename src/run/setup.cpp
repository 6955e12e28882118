#include "src/run/setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "src/config/resolve.hpp"
#include "src/cosmology/power.hpp"
#include "src/io/snapshot_io.hpp"
#include "src/run/initial_sets.hpp"
#include "src/run/run_options.hpp"
#include "src/simulation/frame.hpp"

namespace maki {
namespace {

bool has_units(const Config::Units& given) { return given.length || given.mass || given.velocity; }

// Throws Error where the configuration gives other units than those of a set that has its own. `set` names it.
void require_units(const Config& config, const UnitSystem& units, const std::string& set) {
  if (has_units(config.units) && run_units(config, nullptr) != units)
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
  if (report.has_units) return require_units(config, header.units, file);
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

// A warning where all particles lie near one corner of the box, as where its size is in another unit than positions.
void note_extent(Prepared& run, const Communicator& ranks) {
  constexpr double kCorner = 0.25;  // of the box
  double reach = 0;
  for (const auto& position : run.initial.positions) reach = std::max(reach, distance_from({}, position));
  reach = largest_of(ranks, reach);
  if (reach >= kCorner * run.side) return;
  run.notes.push_back(
      fmt::format("Warning: the box has a side of {:g}, and no coordinate is above {:.4g}: see whether the size of the "
                  "box is in the unit of the positions.",
                  run.side, reach));
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
  note_extent(run, ranks);
  static_cast<Background&>(header) = cosmology_parameters(run.config);  // the user may override the file's
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
      fmt::format("Warning: the box has waves of k = {:.3g} to {:.3g} in 1 / ({}), and {} has {:.3g} to {:.3g}: "
                  "beyond, the spectrum is extrapolated by the slope at the table's end. Give a wider table.",
                  longest, shortest, unit_name(run.units, Dimension::kLength), run.config.cosmology.transfer_table,
                  range->first, range->second));
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

KnownOfSet known_of_set(const Config& config) {
  return {config.run.kind == RunKind::kIsolated, config.initial.redshift};
}

}  // namespace

void check_file_units(const Config& config, const Communicator& ranks) {
  if (config.initial.kind != InitialKind::kFile || !has_units(config.units)) return;
  if (const auto units = stated_units(config.initial.file, known_of_set(config), ranks))
    require_units(config, *units, fmt::format("'{}'", config.initial.file));
}

Prepared prepare(Config config, bool with_particles, const Communicator& ranks) {
  check_kinds(config);
  if (config.initial.kind == InitialKind::kFile) {
    ReadReport report;
    Snapshot share = read_snapshot(config.initial.file, &report, ranks, known_of_set(config));
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
  require_units(config, share.header.units, "the set");
  const double mass = total_mass(share, ranks);
  Prepared run = prepare_set(std::move(config), std::move(share), true, ranks);
  note_density(run, mass);
  return run;
}

}  // namespace maki
