// Resolves a configuration: every "auto" gets its value, by the presets of accuracy or the given error of forces, and
// contradictions are refused.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/config/config.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// r_cut stays below this part of the box: a group spans up to a quarter of the box, and the nearest image of a source
// has to be the same for all its members.
inline constexpr double kMaxReach = 0.25;

struct PresetNumbers {
  Preset preset;
  double theta;        // opening angle
  double theta_early;  // the same while forces nearly cancel (src/simulation/gravity_field.hpp)
  int split_order;     // n of the polynomial split
  double r_cut;        // mesh cells
  double mesh_factor;  // mesh cells along a side over particles along a side
  Assignment assignment;
  Interlacing interlacing;
  Gradient gradient;
  bool refine_root;        // full single precision in 1/r; without: 2e-5 rms of each pair's force
  double reuse_tolerance;  // error of kept lists over that of fresh ones
  double eta;              // time step over sqrt(softening / acceleration)
  double max_dlna;         // longest step in ln a (with factors of linear growth; without: long_dlna)
  double long_dlna;        // longest step of the mesh force in ln a where it has several short ones
};

const PresetNumbers& preset_numbers(Preset preset);
// The numbers of the preset; `fast` has a larger r_cut for a lattice of `particles` whose mesh cannot have 1.5 cells a
// spacing. Where gravity.error is given, those of the forces come from the table of settings by error: the cheapest row
// whose measured errors were not larger in any box, at any redshift, or in isolated sets (bench/NOTES.md, "Settings by
// error"), and for such a lattice the row two further down, which is more precise. Isolated sets have a `theta` of
// their own.
PresetNumbers numbers_of(const Config& config, std::uint64_t particles = 0);
// The smallest gravity.error.
inline constexpr double kLeastForceError = 1e-4;
// The targets of output.error_targets where gravity.error is given.
inline constexpr std::int64_t kErrorTargets = 1000;

// Fills what is "auto" in gravity and time from numbers_of(). `particles` is the number in the box: its cube root sets
// the mesh.
void resolve_presets(Config& config, std::uint64_t particles);

// Sets to "auto" again the keys of `config` that still have the values that resolve_presets() chose for the resolved
// configuration `before`; other keys have changed since.
void choose_again(Config& config, const Config& before, std::uint64_t particles);

// The smallest even number >= `least` without prime factors above 7: transforms of other lengths are slow.
std::int64_t good_mesh(double least);

// Cells a side of the force's mesh for `per_side` particles, an even number. Where possible it has no prime factor
// above 7 and gives about `factor` (1.5 to 1.56) cells to a particle, else 1.5 or a little more. On a lattice errors
// grow with the cells a spacing beyond 1.5, as the waves that a mesh takes for one another become longer
// (docs/accuracy.md).
std::int64_t force_mesh(double factor, double per_side);

// Facts of the initial conditions: their number, and the header where they come from a file.
struct InitialFacts {
  std::uint64_t particles = 0;
  const SnapshotHeader* file = nullptr;
  double isolated_side = 0;  // of an isolated set: the box that suits it (src/run/setup.hpp)
  // Total mass over the mass of the second heaviest particle: below `particles` where a few have most of the mass.
  // 0: unknown.
  double alike = 0;
  // Total mass over the mass of the lightest particle; 0: unknown.
  double lightest = 0;
  // At least half of the particles are as light as the lightest, to a factor of two, as in a zoom.
  bool mostly_light = false;
};

// Fills all keys that have a rule and checks the physics. Adds the sources of values to `notes`, a sentence each.
// Throws Error where keys contradict each other or the file. Resolving twice changes nothing.
void resolve(Config& config, const InitialFacts& facts, std::vector<std::string>& notes);
// Resolves only the cosmology; `file`: null where there is none.
void resolve_cosmology(Config::Cosmology& cosmology, const SnapshotHeader* file, std::vector<std::string>& notes);

// The units a run computes and writes in: those of `file` where there is one.
UnitSystem run_units(const Config& config, const SnapshotHeader* file);
// Newton's constant in these units.
double run_gravitational_constant(const Config& config, const UnitSystem& units, const SnapshotHeader* file);

// Parameters of the cosmology in a resolved configuration.
CosmologyParameters cosmology_parameters(const Config& config);
// The linear power spectrum that it names.
PowerOptions power_options(const Config& config);
// A quantity in the run's units (wall-clock times in s, memory in bytes); `key` is its path in the table, which knows
// the dimension and the unit of plain numbers.
double number_of(const Quantity& quantity, const char* key, const Config& config, const UnitSystem& units);

// The unit in which times of an isolated run are shown: that of time.end_time, for a plain number the run's own.
TimeUnit time_unit(const Config& config, const UnitSystem& units);

// Outputs of an isolated run, in its units: output.times and the multiples of output.interval from 0 to the end, in no
// order, some perhaps twice. Throws Error for kMostIntervals multiples and more.
inline constexpr double kMostIntervals = 1e5;
std::vector<double> output_times(const Config& config, const UnitSystem& units);

// output.image_centre in the run's units of length.
std::array<double, 3> image_centre(const Config& config, const UnitSystem& units);

// lightcone.observers in the run's units of length.
std::vector<std::array<double, 3>> light_cone_observers(const Config& config, const UnitSystem& units);

// Checks across keys, for values that are valid one by one and wrong together. All throw Error.

// Checks the run kind, the initial conditions and the keys that they need, before there are particles.
void check_kinds(const Config& config);

// Sentences on keys that are given and have no effect; for a configuration that is not resolved yet.
std::vector<std::string> idle_keys(const Config& config);

// The start of runs that make their own initial conditions, where initial.redshift is "auto".
inline constexpr double kUsualRedshift = 49;

// Checks a resolved configuration: softening against box, mesh and split; output lists and end against the start (that
// of `file` where there is one). Throws Error with the numbers.
void check_numbers(const Config& config, const UnitSystem& units, const SnapshotHeader* file);

// Checks the light cones of a run that starts at redshift `start`. Throws Error.
void check_light_cones(const Config& config, const UnitSystem& units, double start);

// Throws Error for a softening below 256 units of the last bit of the fixed-point coordinates. Lengths in one unit.
void check_resolution(double softening, double side);

}  // namespace maki
