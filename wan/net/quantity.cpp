#include "wan/net/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// clang-format off
constexpr Unit kSizes[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
                           {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
constexpr Unit kRates[] = {{"Mbit/s", 125e3}, {"Gbit/s", 125e6}, {"kbit/s", 125}, {"bit/s", 0.125}, {"B/s", 1},
                           {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}};
constexpr Unit kTimes[] = {{"s", 1}, {"ms", 1e-3}, {"min", 60}, {"h", 3600}, {"d", 86400}};
// clang-format on

std::string names_of(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

double factor_of(std::span<const Unit> units, std::string_view name) {
  const auto found = std::ranges::find(units, name, &Unit::name);
  return found == units.end() ? 0 : found->factor;
}

// `plain`: the unit of a number without one; 0: only zero may have none.
double parse(const std::string& text, const char* what, std::span<const Unit> units, double plain) {
  const std::string expected = fmt::format("a number and one of the units {}", names_of(units));
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || !std::isfinite(number))
    throw Error(fmt::format("'{}' does not begin with a number", text), "",
                fmt::format("give a {}: {}", what, expected));
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  unit = unit.substr(0, unit.find_last_not_of(' ') + 1);
  const double factor = unit.empty() ? plain : factor_of(units, unit);
  if (!unit.empty() && factor == 0)
    throw Error(fmt::format("'{}' has an unknown unit, '{}'", text, unit), "",
                fmt::format("give a {}: {}", what, expected));
  if (number < 0) throw Error(fmt::format("'{}' is below zero", text));
  if (factor == 0 && number != 0) throw Error(fmt::format("'{}' has no unit", text), "", "give " + expected);
  return number * factor;
}

}  // namespace

std::size_t parse_size(const std::string& text) {
  const double bytes = parse(text, "size", kSizes, 1);
  if (bytes > 9e18 || bytes != std::floor(bytes)) throw Error(fmt::format("'{}' is no number of bytes", text));
  return static_cast<std::size_t>(bytes);
}

double parse_rate(const std::string& text) { return parse(text, "rate", kRates, 0); }
double parse_seconds(const std::string& text) { return parse(text, "time", kTimes, 1); }

int parse_integer(const std::string& text, int low, int high) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || rest != end || number < low || number > high)
    throw Error(fmt::format("'{}' does not fit", text), "", fmt::format("give an integer, {} to {}", low, high));
  return number;
}

std::string size_text(std::size_t bytes) {
  for (const char* name : {"GB", "GiB", "MB", "MiB", "kB", "KiB"}) {
    const auto factor = static_cast<std::size_t>(factor_of(kSizes, name));
    if (bytes >= factor && bytes % factor == 0) return fmt::format("{} {}", bytes / factor, name);
  }
  return fmt::format("{} B", bytes);
}

std::string rate_text(double bytes_per_second) {
  for (const char* name : {"Mbit/s", "MB/s"}) {
    const double factor = factor_of(kRates, name);
    if ((bytes_per_second / factor) * factor == bytes_per_second)
      return fmt::format("{} {}", bytes_per_second / factor, name);
  }
  return fmt::format("{} B/s", bytes_per_second);
}

std::string amount(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  if (value < 1e9) return fmt::format("{:.1f} MB", value / 1e6);
  return value < 1e12 ? fmt::format("{:.2f} GB", value / 1e9) : fmt::format("{:.3f} TB", value / 1e12);
}

}  // namespace maki::wan
