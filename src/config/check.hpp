// What the table of keys cannot see: numbers that are right one by one and wrong together.
#pragma once

#include "src/config/config.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// Run kind, initial conditions and what they need. No particles yet.
void check_kinds(const Config& config);

// A resolved configuration: softening against box, mesh and split; output lists and end against the start, which is
// that of `file` where there is one. Throws Error with the numbers.
void check_numbers(const Config& config, const UnitSystem& units, const SnapshotHeader* file);

// Fixed-point coordinates: a softening below 256 units of the last bit is refused. Lengths in one unit.
void check_resolution(double softening, double side);

}  // namespace maki
