// From what a user wrote to what a run does: every "auto" gets its value, and what makes no sense is refused.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/config/config.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// What the initial conditions say about themselves: their number, and the header where they come from a file.
struct InitialFacts {
  std::uint64_t particles = 0;
  const SnapshotHeader* file = nullptr;
  double isolated_side = 0;  // of an isolated set: the box that suits it (src/run/setup.hpp)
};

// Fills all keys that have a rule and checks the physics. Adds sentences on what was taken from where to `notes`.
// Throws Error where keys contradict each other or the file. Resolving twice changes nothing.
void resolve(Config& config, const InitialFacts& facts, std::vector<std::string>& notes);
// The part of it about cosmology; `file`: null where there is none.
void resolve_cosmology(Config::Cosmology& cosmology, const SnapshotHeader* file, std::vector<std::string>& notes);

// The units a run computes and writes in: those of `file` where there is one.
UnitSystem run_units(const Config& config, const SnapshotHeader* file);
// Newton's constant in these units.
double run_gravitational_constant(const Config& config, const UnitSystem& units, const SnapshotHeader* file);

// Parameters of the cosmology in a resolved configuration.
CosmologyParameters cosmology_parameters(const Config& config);
// A quantity in the run's units (wall-clock times in s, memory in bytes); `key` is its path in the table, which knows
// the dimension and the unit of plain numbers.
double number_of(const Quantity& quantity, const char* key, const Config& config, const UnitSystem& units);

// output.image_centre in the run's units of length.
std::array<double, 3> image_centre(const Config& config, const UnitSystem& units);

// lightcone.observers in the run's units of length.
std::vector<std::array<double, 3>> light_cone_observers(const Config& config, const UnitSystem& units);

// What the table of keys cannot see: numbers that are right one by one and wrong together.

// Run kind, initial conditions and what they need. No particles yet.
void check_kinds(const Config& config);

// A resolved configuration: softening against box, mesh and split; output lists and end against the start, which is
// that of `file` where there is one. Throws Error with the numbers.
void check_numbers(const Config& config, const UnitSystem& units, const SnapshotHeader* file);

// Light cones of a run that starts at redshift `start`. Throws Error.
void check_light_cones(const Config& config, const UnitSystem& units, double start);

// Fixed-point coordinates: a softening below 256 units of the last bit is refused. Lengths in one unit.
void check_resolution(double softening, double side);

}  // namespace maki
