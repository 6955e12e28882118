#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "kernels/error.hpp"
#include "kernels/force/split.hpp"
#include "kernels/measure/power_spectrum.hpp"
#include "kernels/particles/types.hpp"
#include "src/config/keys.hpp"
#include "src/config/resolve.hpp"
#include "src/cosmology/cosmology.hpp"

namespace maki {
namespace {

void check_even(std::int64_t number, const char* key) {
  if (number % 2 != 0) throw Error(fmt::format("{} = {} is odd", key, number), "", fmt::format("try {}", number + 1));
}

void check_folding(std::int64_t folding) {
  const auto number = static_cast<std::uint64_t>(folding);
  if (!std::has_single_bit(number))
    throw Error(fmt::format("output.power_folding = {} is no power of two", folding),
                "each folding of the box is twice the one before", fmt::format("try {}", std::bit_ceil(number)));
}

// A run that continues from a file may have made its first outputs already.
void check_redshifts(const Config& config, double start, bool may_continue) {
  const double end = config.time.end_redshift;
  if (end >= start) {
    throw Error(fmt::format("the run ends before it starts: time.end_redshift = {}", end),
                fmt::format("it starts at z = {:.8g}", start), "give a smaller end_redshift");
  }
  for (const double z : config.output.redshifts) {
    // Headers carry rounded redshifts.
    if ((!may_continue && z > start * (1 + 1e-6)) || z < end - 1e-9) {
      throw Error(fmt::format("output.redshifts holds {}", z),
                  fmt::format("the run goes from z = {} to {}", start, end), "take it out, or move time.end_redshift");
    }
  }
}

void check_times(const Config& config, const UnitSystem& units, double start) {
  const double end = number_of(config.time.end_time, "time.end_time", config, units);
  if (!std::isfinite(start) || end <= start) {
    constexpr int kDigits = 8;
    const TimeUnit unit = time_unit(config, units);
    throw Error(fmt::format("the run ends before it starts: time.end_time is {}", time_text(end, unit, kDigits)),
                fmt::format("it starts at {}", time_text(start, unit, kDigits)), "give a later end_time");
  }
  for (const Quantity& time : config.output.times) {
    if (number_of(time, "output.times", config, units) > end * (1 + 1e-12)) {
      throw Error(fmt::format("output.times holds {}", to_string(time)),
                  fmt::format("the run ends at {}", to_string(config.time.end_time)),
                  "take it out, or move time.end_time");
    }
  }
  (void)output_times(config, units);  // throws where there are too many
}

void check_mesh(const Config::Gravity& gravity, double softening, double side) {
  check_even(*gravity.mesh, "gravity.mesh");
  const double cell = side / static_cast<double>(*gravity.mesh);
  if (*gravity.r_cut >= kMaxReach * static_cast<double>(*gravity.mesh)) {
    throw Error(fmt::format("gravity.r_cut = {} cells is too long for gravity.mesh = {}", *gravity.r_cut,
                            *gravity.mesh),
                "it has to stay below a quarter of the box",
                fmt::format("use a mesh of at least {}", good_mesh(*gravity.r_cut / kMaxReach + 0.1)));
  }
  if (softening > cell) {
    throw Error(fmt::format("gravity.softening is {:.4g} mesh cells", softening / cell),
                "the tree has to carry all of it", "use a softening below one cell, or fewer cells");
  }
  const double most = largest_softening(gravity.softening_kind, *gravity.r_cut * cell);
  if (softening >= most)
    throw Error(fmt::format("gravity.softening = {:.4g} is too large for gravity.r_cut = {} cells of {:.4g}", softening,
                            *gravity.r_cut, cell),
                "the mesh force would have to be softened too",
                fmt::format("use less than {:.4g}, a longer r_cut, or fewer cells", most));
}

// Settings of another cosmology.transfer.
void check_spectrum(const Config::Cosmology& cosmology) {
  const auto require = [&](PowerModel transfer, const char* key, bool given) {
    if (given && cosmology.transfer != transfer)
      throw Error(fmt::format("cosmology.{} is set, but cosmology.transfer is \"{}\"", key,
                              name_of(cosmology.transfer)),
                  "it would have no effect",
                  fmt::format("set cosmology.transfer = \"{}\", or leave it out", name_of(transfer)));
  };
  require(PowerModel::kTable, "transfer_table", !cosmology.transfer_table.empty());
  require(PowerModel::kTable, "table_redshift", cosmology.table_redshift != Config::Cosmology{}.table_redshift);
  require(PowerModel::kPowerLaw, "power_law_index", cosmology.power_law_index != Config::Cosmology{}.power_law_index);
}

void check_snapshots(const Config& config) {
  const Config::Output& output = config.output;
  for (auto field = output.fields.begin(); field != output.fields.end(); ++field)
    if (std::find(kFieldNames.begin(), kFieldNames.end(), *field) == kFieldNames.end() ||
        std::find(output.fields.begin(), field, *field) != field)
      throw Error(fmt::format("output.fields holds '{}'", *field), "there is no such field, or it is there twice",
                  fmt::format("choose some of {}", fmt::join(kFieldNames, ", ")));
  if (output.fields.empty())
    throw Error("output.fields is empty", "", fmt::format("choose some of {}", fmt::join(kFieldNames, ", ")));
  if (output.files > 1 && config.sites.ring.size() > 1)
    throw Error("output.files is above 1 in a run over sites", "each site writes one file of a snapshot",
                "leave output.files out");
  if (config.run.kind == RunKind::kCosmology && output.groups_only && !output.groups)
    throw Error("output.groups_only needs output.groups", "", "set output.groups = true");
}

}  // namespace

void check_kinds(const Config& config) {
  if (config.run.name.empty())
    throw Error("run.name is empty", "it names the output directory", "give a name, or leave run.name out");
  check_snapshots(config);
  using enum InitialKind;
  const InitialKind initial = config.initial.kind;
  const bool cosmological = config.run.kind == RunKind::kCosmology;
  const bool makes_cosmological = initial == kLpt || initial == kPancake;
  if (initial != kFile && cosmological != makes_cosmological) {
    throw Error(fmt::format("run.kind is \"{}\" and initial.kind is \"{}\"", name_of(config.run.kind),
                            name_of(initial)),
                fmt::format("the latter makes {} set", makes_cosmological ? "a cosmological" : "an isolated"),
                fmt::format("set run.kind = \"{}\", or choose another initial.kind",
                            makes_cosmological ? "cosmology" : "isolated"));
  }
  if (initial == kFile && config.initial.file.empty()) {
    throw Error("initial.kind is \"file\", but initial.file is not set", "", "give the path of a snapshot");
  }
  if (makes_cosmological) check_even(config.initial.particles_per_side, "initial.particles_per_side");
  const bool table = initial == kLpt && config.cosmology.transfer == PowerModel::kTable;
  if (table && config.cosmology.transfer_table.empty()) {
    throw Error("cosmology.transfer is \"table\", but cosmology.transfer_table is not set", "",
                "give the path of a table");
  }
  check_spectrum(config.cosmology);
  if (config.output.power_mesh) check_even(*config.output.power_mesh, "output.power_mesh");
  check_folding(config.output.power_folding);
}

std::vector<std::string> idle_keys(const Config& config) {
  const Config::Output& output = config.output;
  const bool steady = config.time.fixed_step.has_value(), pictures = output.image || output.film > 0;
  const bool ghosts = config.run.deterministic && config.run.kind == RunKind::kCosmology;
  const struct {
    bool idle;
    const char* reason;
    std::vector<const char*> keys;
  } rules[] = {
      {steady, "time.fixed_step is given", {"time.eta", "time.max_dlna"}},
      {config.gravity.split == Split::kS2, "gravity.split is \"s2\"", {"gravity.split_order"}},
      {config.gravity.reuse.has_value(), "gravity.reuse is given", {"gravity.reuse_tolerance"}},
      {ghosts && !config.gravity.reuse, "run.deterministic is set", {"gravity.reuse_tolerance"}},
      {ghosts, "run.deterministic is set", {"gravity.let_compression"}},
      {!output.power_spectrum, "output.power_spectrum is false", {"output.power_mesh", "output.power_folding"}},
      {!pictures,
       "there are neither images nor a film",
       {"output.image_pixels", "output.image_width", "output.image_depth", "output.image_axis", "output.image_centre",
        "output.image_low", "output.image_high"}},
      {output.film == 0, "output.film is 0", {"output.film_cadence"}},
      {config.run.restarts_kept == 0, "run.restarts_kept is 0", {"run.restart_interval", "run.restart_steps"}},
  };
  std::vector<std::string> notes;
  for (const auto& rule : rules)
    for (const char* const path : rule.keys) {
      const Key& key = find_key(path);
      if (rule.idle && key.applies_to(config) && key.get(config) != key.get(Config{}))
        notes.push_back(fmt::format("{} has no effect: {}.", path, rule.reason));
    }
  return notes;
}

void check_resolution(double softening, double side) {
  const double units = softening / side * kSideToUnits;
  if (units >= kLeastSofteningUnits) return;
  throw Error(fmt::format("the softening {:.6g} is too small for a box of {:.6g}", softening, side),
              fmt::format("positions are multiples of {:.3g}, 2^-32 of the box, and it has to be 256 of them",
                          side / kSideToUnits),
              fmt::format("use at least {:.6g}", kLeastSofteningUnits / kSideToUnits * side));
}

void check_opening(const Config& config) {
  if (config.gravity.opening != Opening::kError || config.gravity.method == Method::kDirect) return;
  if (!config.gravity.quadrupoles)
    throw Error("gravity.opening = \"error\" needs gravity.quadrupoles",
                "errors are estimated for cells with quadrupoles",
                "leave gravity.opening out: cells then open by angle");
}

// The errors of gravity.error were measured with quadrupoles.
void check_error(const Config& config) {
  if (config.gravity.error && !config.gravity.quadrupoles)
    throw Error("gravity.error needs gravity.quadrupoles", "without them forces err by several times more",
                "leave gravity.quadrupoles out, or choose gravity.theta instead of gravity.error");
}

std::array<double, 3> image_centre(const Config& config, const UnitSystem& units) {
  std::array<double, 3> centre{};
  for (std::size_t axis = 0; axis < 3; ++axis)
    centre[axis] = number_of({config.output.image_centre[axis], ""}, "output.image_width", config, units);
  return centre;
}

// Throws Error where one of these coordinates, in Mpc/h, is outside of a periodic box of this side.
void check_coordinates(const char* key, const std::vector<double>& coordinates, const Config& config,
                       const UnitSystem& units, double side) {
  for (const double given : coordinates)
    if (const double x = number_of({given, ""}, "box.size", config, units); !(x >= 0 && x <= side))
      throw Error(fmt::format("{} holds {}, which is not in the box", key, given),
                  fmt::format("box.size is {}", to_string(*config.box.size)),
                  "coordinates go from 0 to the side, in Mpc/h");
}

// Checks pictures against a box of this side, in units of length.
void check_pictures(const Config& config, const UnitSystem& units, double side) {
  const Config::Output& output = config.output;
  if (!output.image_centre.empty() && output.image_centre.size() != 3)
    throw Error(fmt::format("output.image_centre has {} numbers", output.image_centre.size()), "it is a place",
                "give three, x, y and z");
  if (output.image_low && output.image_high && *output.image_low >= *output.image_high)
    throw Error(fmt::format("output.image_low = {} is not below output.image_high = {}", *output.image_low,
                            *output.image_high),
                "", "give a smaller image_low");
  const bool isolated = config.run.kind == RunKind::kIsolated;
  const auto check_part = [&](const char* key, const std::optional<Quantity>& length) {
    if (!length || number_of(*length, key, config, units) <= side * (isolated ? kMostProjected : 1 + 1e-9)) return;
    throw Error(fmt::format("{} = {} is more than {}the box", key, to_string(*length),
                            isolated ? "a million times " : ""),
                isolated ? fmt::format("box.size is {}", to_string(*config.box.size)) : "",
                isolated ? "look at its unit" : "leave it out for the whole box");
  };
  check_part("output.image_depth", output.image_depth);
  check_part("output.image_width", output.image_width);
  if (isolated || output.image_centre.empty()) return;
  check_coordinates("output.image_centre", output.image_centre, config, units, side);
}

void check_numbers(const Config& config, const UnitSystem& units, const SnapshotHeader* file) {
  check_error(config);
  if (config.run.kind == RunKind::kCosmology && config.time.fixed_step.value_or(0) > 0.5)
    throw Error(fmt::format("time.fixed_step = {} is too long", *config.time.fixed_step),
                "a step of a cosmological run is in ln a", "give 0.5 at most");
  const double side = number_of(*config.box.size, "box.size", config, units);
  const double softening = number_of(*config.gravity.softening, "gravity.softening", config, units);
  check_resolution(softening, side);
  check_pictures(config, units, side);
  if (config.run.kind == RunKind::kIsolated) {
    check_opening(config);
    return check_times(config, units, file != nullptr ? file->time : 0);
  }
  const double start = file != nullptr ? file->redshift : *config.initial.redshift;
  check_redshifts(config, start, file != nullptr);
  check_light_cones(config, units, start);
  check_mesh(config.gravity, softening, side);
  const auto& cosmology = config.cosmology;
  if (config.initial.kind != InitialKind::kPancake && *cosmology.omega_baryon > *cosmology.omega0) {
    throw Error(fmt::format("cosmology.omega_baryon = {} is more than cosmology.omega0 = {}", *cosmology.omega_baryon,
                            *cosmology.omega0),
                "omega0 is all matter", "baryons are a part of it");
  }
  (void)Cosmology(cosmology_parameters(config), units);  // which checks itself
}

// Keys of light cones that are valid one by one and wrong together.

namespace {

void check_observers(const Config& config, const UnitSystem& units) {
  const Config::LightCone& cone = config.lightcone;
  if (cone.observers.size() % 3 != 0)
    throw Error(fmt::format("lightcone.observers has {} numbers", cone.observers.size()), "each observer is a place",
                "give three for each, x, y and z");
  const double side = number_of(*config.box.size, "box.size", config, units);
  check_coordinates("lightcone.observers", cone.observers, config, units, side);
}

void check_directions(const Config::LightCone& cone) {
  const std::vector<double>& all = cone.directions;
  if (!all.empty() && all.size() != 3 && all.size() != cone.observers.size())
    throw Error(fmt::format("lightcone.directions has {} numbers", all.size()),
                fmt::format("there are {} observers", cone.observers.size() / 3),
                "give three for each observer, or three for all");
  for (std::size_t i = 0; i < all.size(); i += 3)
    if (all[i] == 0 && all[i + 1] == 0 && all[i + 2] == 0)
      throw Error("lightcone.directions holds 0, 0, 0", "that is no direction", "give a vector of any other length");
}

void check_edges(const Config& config, double start) {
  const std::vector<double>& edges = config.lightcone.edges;
  if (edges.size() < 2)
    throw Error(fmt::format("lightcone.edges has {} edges", edges.size()), "a shell lies between two",
                "give at least two, such as lightcone.edges = [0, 1]");
  if (!std::is_sorted(edges.begin(), edges.end(), std::less_equal<>()))
    throw Error("lightcone.edges does not ascend", "", "give the nearest edge first, and none twice");
  const double end = std::max(0.0, config.time.end_redshift);
  if (edges.front() < end || edges.back() > start)
    throw Error(fmt::format("lightcone.edges goes from {} to {}", edges.front(), edges.back()),
                fmt::format("the run goes from z = {} to {}, and its observers stand at z = 0", start, end),
                "leave shells out, or move time.end_redshift or the start");
}

}  // namespace

std::vector<std::array<double, 3>> light_cone_observers(const Config& config, const UnitSystem& units) {
  const std::vector<double>& numbers = config.lightcone.observers;
  std::vector<std::array<double, 3>> places(numbers.size() / 3);
  for (std::size_t i = 0; i < 3 * places.size(); ++i)
    places[i / 3][i % 3] = number_of({numbers[i], ""}, "box.size", config, units);
  return places;
}

void check_light_cones(const Config& config, const UnitSystem& units, double start) {
  const Config::LightCone& cone = config.lightcone;
  if (cone.observers.empty()) {
    if (cone == Config::LightCone{}) return;
    throw Error("there are keys of light cones and no observer", "",
                "give lightcone.observers = [x, y, z], or take the others out");
  }
  check_observers(config, units);
  check_directions(cone);
  check_edges(config, start);
  if ((cone.nside & (cone.nside - 1)) != 0)
    throw Error(fmt::format("lightcone.nside = {} is no power of two", cone.nside), "", "try 64, 256 or 1024");
  if (!cone.write_particles && cone.nside == 0)
    throw Error("light cones without particles and without maps hold nothing", "",
                "set lightcone.nside, or leave lightcone.write_particles out");
}

}  // namespace maki
