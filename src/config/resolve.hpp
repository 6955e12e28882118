// Resolves a configuration: every "auto" gets its value, and contradictions are refused.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/config/config.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// Facts of the initial conditions: their number, and the header where they come from a file.
struct InitialFacts {
  std::uint64_t particles = 0;
  const SnapshotHeader* file = nullptr;
  double isolated_side = 0;  // of an isolated set: the box that suits it (src/run/setup.hpp)
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
// A quantity in the run's units (wall-clock times in s, memory in bytes); `key` is its path in the table, which knows
// the dimension and the unit of plain numbers.
double number_of(const Quantity& quantity, const char* key, const Config& config, const UnitSystem& units);

// output.image_centre in the run's units of length.
std::array<double, 3> image_centre(const Config& config, const UnitSystem& units);

// lightcone.observers in the run's units of length.
std::vector<std::array<double, 3>> light_cone_observers(const Config& config, const UnitSystem& units);

// Checks across keys: numbers that are valid one by one and wrong together.

// Checks the run kind, the initial conditions and the keys that they need, before there are particles.
void check_kinds(const Config& config);

// Checks a resolved configuration: softening against box, mesh and split; output lists and end against the start (that
// of `file` where there is one). Throws Error with the numbers.
void check_numbers(const Config& config, const UnitSystem& units, const SnapshotHeader* file);

// Checks the light cones of a run that starts at redshift `start`. Throws Error.
void check_light_cones(const Config& config, const UnitSystem& units, double start);

// Throws Error for a softening below 256 units of the last bit of the fixed-point coordinates. Lengths in one unit.
void check_resolution(double softening, double side);

}  // namespace maki
