#include "src/config/quantity.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "kernels/error.hpp"

namespace maki {
namespace {

constexpr double kYear = 3.15576e7;  // s, Julian

constexpr Unit kUnits[] = {
    {"kpc/h", Dimension::kLength, 3.085677581491367e21, true},
    {"Mpc/h", Dimension::kLength, 3.085677581491367e24, true},
    {"Gpc/h", Dimension::kLength, 3.085677581491367e27, true},
    {"pc", Dimension::kLength, 3.085677581491367e18, false},
    {"kpc", Dimension::kLength, 3.085677581491367e21, false},
    {"Mpc", Dimension::kLength, 3.085677581491367e24, false},
    {"Gpc", Dimension::kLength, 3.085677581491367e27, false},
    {"AU", Dimension::kLength, 1.495978707e13, false},
    {"km", Dimension::kLength, 1e5, false},
    {"Msun/h", Dimension::kMass, kSolarMassCgs, true},
    {"Msun", Dimension::kMass, kSolarMassCgs, false},
    {"kg", Dimension::kMass, 1e3, false},
    {"g", Dimension::kMass, 1, false},
    {"km/s", Dimension::kVelocity, 1e5, false},
    {"m/s", Dimension::kVelocity, 1e2, false},
    {"cm/s", Dimension::kVelocity, 1, false},
    {"yr", Dimension::kTime, kYear, false},
    {"Myr", Dimension::kTime, 1e6 * kYear, false},
    {"Gyr", Dimension::kTime, 1e9 * kYear, false},
    {"s", Dimension::kWallTime, 1, false},
    {"min", Dimension::kWallTime, 60, false},
    {"h", Dimension::kWallTime, 3600, false},
    {"d", Dimension::kWallTime, 86400, false},
    {"B", Dimension::kMemory, 1, false},
    {"MB", Dimension::kMemory, 1e6, false},
    {"GB", Dimension::kMemory, 1e9, false},
};

const char* dimension_name(Dimension dimension) {
  constexpr std::array names = {"number", "length", "mass", "velocity", "time", "time", "memory"};
  return names[static_cast<std::size_t>(dimension)];
}

// "kpc/h, Mpc/h, ...".
std::string unit_names(Dimension dimension) {
  std::string names;
  for (const Unit& unit : kUnits) {
    if (unit.dimension == dimension) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  }
  return names;
}

// In cgs; the unit of time is length over velocity.
double factor_of(const UnitSystem& units, Dimension dimension) {
  switch (dimension) {
    case Dimension::kLength: return units.length_cgs;
    case Dimension::kMass: return units.mass_cgs;
    case Dimension::kVelocity: return units.velocity_cgs;
    default: return units.length_cgs / units.velocity_cgs;
  }
}

}  // namespace

const Unit* find_unit(std::string_view name, Dimension dimension) {
  for (const Unit& unit : kUnits) {
    if (unit.dimension == dimension && name == unit.name) return &unit;
  }
  return nullptr;
}

Quantity parse_quantity(const std::string& text, Dimension dimension) {
  Quantity quantity;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, quantity.value);
  const std::string expected =
      fmt::format("a {}: a number and one of the units {}", dimension_name(dimension), unit_names(dimension));
  if (failure != std::errc() || !std::isfinite(quantity.value)) {
    throw Error(fmt::format("'{}' does not begin with a number", text), "", "give " + expected);
  }
  const std::string_view tail(rest, static_cast<std::size_t>(end - rest));
  const auto begin = tail.find_first_not_of(' ');
  if (begin == std::string_view::npos) return quantity;
  quantity.unit = tail.substr(begin, tail.find_last_not_of(' ') + 1 - begin);
  if (find_unit(quantity.unit, dimension) == nullptr) {
    throw Error(fmt::format("'{}' has an unknown unit, '{}'", text, quantity.unit), "", "give " + expected);
  }
  return quantity;
}

std::string to_string(const Quantity& quantity) {
  return quantity.unit.empty() ? fmt::format("{}", quantity.value)
                               : fmt::format("{} {}", quantity.value, quantity.unit);
}

double in_units(const Quantity& quantity, Dimension dimension, const char* fallback, const UnitSystem& units,
                double h) {
  const std::string& name = quantity.unit.empty() ? std::string(fallback) : quantity.unit;
  if (name.empty()) return quantity.value;
  const Unit* unit = find_unit(name, dimension);
  if (unit == nullptr) throw Error(fmt::format("'{}' is no unit of {}", name, dimension_name(dimension)));
  if (pure_numbers(units)) {
    throw Error(fmt::format("'{}' needs units, but those of this run are pure numbers", to_string(quantity)), "",
                "set units.length, units.mass and units.velocity, or give a plain number");
  }
  if (dimension == Dimension::kNone || dimension == Dimension::kWallTime || dimension == Dimension::kMemory)
    throw Error(fmt::format("'{}' has no unit of the run", to_string(quantity)));
  // Power of h in the run's unit, less that in the number's unit.
  const int h_power = dimension == Dimension::kVelocity ? 0 : units.with_h - unit->over_h;
  const double number = quantity.value * (unit->factor / factor_of(units, dimension));
  return h_power == 0 ? number : number * std::pow(h, h_power);
}

double ratio_of_times(const Quantity& time, const Quantity& other) {
  if (time.unit.empty() && other.unit.empty()) return time.value / other.value;
  const Unit* const unit = find_unit(time.unit, Dimension::kTime);
  const Unit* const other_unit = find_unit(other.unit, Dimension::kTime);
  if (unit == nullptr || other_unit == nullptr) return NAN;
  return time.value * unit->factor / (other.value * other_unit->factor);
}

double in_base(const Quantity& quantity, Dimension dimension, const char* fallback) {
  const Unit* unit = find_unit(quantity.unit.empty() ? std::string_view(fallback) : quantity.unit, dimension);
  if (unit == nullptr) throw Error(fmt::format("'{}' is no {}", to_string(quantity), dimension_name(dimension)));
  return quantity.value * unit->factor;
}

namespace {

const char* cgs_name(Dimension dimension) {
  switch (dimension) {
    case Dimension::kLength: return "cm";
    case Dimension::kMass: return "g";
    case Dimension::kVelocity: return "cm/s";
    default: return "s";
  }
}

}  // namespace

std::string unit_name(const UnitSystem& units, Dimension dimension) {
  if (pure_numbers(units)) return "";
  const double factor = factor_of(units, dimension);
  const bool over_h = units.with_h && dimension != Dimension::kVelocity;
  const auto is_power_of_ten = [](double ratio) {
    return ratio > 0 && std::abs(std::log10(ratio) - std::round(std::log10(ratio))) < 1e-5;
  };
  for (const Unit& unit : kUnits) {
    if (unit.dimension == dimension && unit.over_h == over_h && std::abs(unit.factor / factor - 1) < 1e-4)
      return unit.name;
  }
  for (const Unit& unit : kUnits) {
    if (unit.dimension == dimension && dimension == Dimension::kMass && unit.over_h == over_h &&
        is_power_of_ten(factor / unit.factor))
      return fmt::format("1e{} {}", std::lround(std::log10(factor / unit.factor)), unit.name);
  }
  const std::string in_cgs = fmt::format("{:.4g} {}{}", factor, cgs_name(dimension), over_h ? "/h" : "");
  if (dimension != Dimension::kTime) return in_cgs;
  const std::string length = unit_name(units, Dimension::kLength), velocity = unit_name(units, Dimension::kVelocity);
  const auto is_named = [](const std::string& name) { return std::isalpha(static_cast<unsigned char>(name[0])) != 0; };
  return is_named(length) && is_named(velocity) ? fmt::format("{}/({})", length, velocity) : "x " + in_cgs;
}

std::string time_text(double time, const TimeUnit& unit, int digits) {
  return fmt::format("{:.{}g}{}{}", time / unit.length, digits, unit.name.empty() ? "" : " ", unit.name);
}

}  // namespace maki
