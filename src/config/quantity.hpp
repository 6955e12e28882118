// Numbers with a unit, as a user writes them: "50 Mpc/h", "20 kpc/h", "0.5 h", "4 GB".
#pragma once

#include <string>
#include <string_view>

#include "src/io/snapshot.hpp"

namespace maki {

enum class Dimension { kNone, kLength, kMass, kVelocity, kTime, kWallTime, kMemory };

// A quantity as in the file. Without a unit the key's own unit is meant (isolated runs: the run's unit).
struct Quantity {
  double value = 0;
  std::string unit;
  bool operator==(const Quantity&) const = default;
};

struct Unit {
  const char* name;
  Dimension dimension;
  double factor;  // in cm, g, cm/s, s, s, bytes
  bool over_h;    // the number carries 1/h
};

// nullptr for an unknown unit of that dimension.
const Unit* find_unit(std::string_view name, Dimension dimension);

// "50 Mpc/h" -> {50, "Mpc/h"}; "50" -> {50, ""}. Throws Error with the expected form; the caller adds the place.
Quantity parse_quantity(const std::string& text, Dimension dimension);
// "50 Mpc/h", with the shortest digits that give the same double.
std::string to_string(const Quantity& quantity);

// The unit of length, mass, velocity or time of a system as text: "Mpc/h", "1e10 Msun/h", "km/s", "kpc/(km/s)"; "" for
// pure numbers.
std::string unit_name(const UnitSystem& units, Dimension dimension);

// A unit in which times of an isolated set are shown.
struct TimeUnit {
  double length = 1;  // in the unit of time of the set
  std::string name;   // "" for pure numbers
};
// "0.1 Gyr", for a time in the unit of time of the set.
std::string time_text(double time, const TimeUnit& unit, int digits = 6);

// Whether lengths, masses and velocities are pure numbers, with G = 1.
inline bool pure_numbers(const UnitSystem& units) { return units.length_cgs == 1 && units.mass_cgs == 1; }

// In the run's units. `fallback` is the unit meant by a plain number, "" for the run's own. h turns kpc into kpc/h
// where the units carry 1/h. Throws Error where a physical unit meets a run whose units are pure numbers.
double in_units(const Quantity& quantity, Dimension dimension, const char* fallback, const UnitSystem& units, double h);
// The ratio of two times, whatever the run's units are; not a number where one is a plain number and the other is not.
double ratio_of_times(const Quantity& time, const Quantity& other);
// Converts kWallTime to seconds and kMemory to bytes.
double in_base(const Quantity& quantity, Dimension dimension, const char* fallback);

}  // namespace maki
