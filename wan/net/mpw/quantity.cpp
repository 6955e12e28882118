#include "wan/net/mpw/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <initializer_list>

#include "wan/net/error.hpp"

namespace maki::wan::mpw {
namespace {

struct Unit {
  const char* name;
  double factor;
};

double parse(const std::string& text, std::initializer_list<Unit> units) {
  double number = 0;
  const char* end = text.data() + text.size();
  auto [rest, failure] = std::from_chars(text.data(), end, number);
  while (rest != end && *rest == ' ') ++rest;
  const std::string unit(rest, end);
  if (failure == std::errc() && std::isfinite(number) && number >= 0) {
    for (const Unit& known : units) {
      if (unit == known.name || (unit.empty() && number == 0)) return number * known.factor;
    }
  }
  std::string names;
  for (const Unit& known : units) {
    if (*known.name != '\0') names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw Error(fmt::format("'{}' does not fit", text), "", "give a number and one of the units " + names);
}

}  // namespace

double parse_size(const std::string& text) {
  // clang-format off
  return std::floor(parse(text, {{"", 1}, {"B", 1}, {"kB", 1e3}, {"KiB", 1024}, {"MB", 1e6}, {"MiB", 1048576}, {"GB", 1e9},
                                 {"GiB", 1073741824.0}, {"TB", 1e12}, {"TiB", 1099511627776.0}}));
  // clang-format on
}

double parse_rate(const std::string& text) {
  // clang-format off
  return parse(text, {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"bit/s", 0.125}, {"kbit/s", 125},
                      {"Mbit/s", 125e3}, {"Gbit/s", 125e6}});
  // clang-format on
}

double parse_seconds(const std::string& text) {
  return parse(text, {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"min", 60}, {"h", 3600}, {"d", 86400}});
}

int parse_integer(const std::string& text, int low, int high) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || rest != end || number < low || number > high)
    throw Error(fmt::format("'{}' does not fit", text), "", fmt::format("give an integer, {} to {}", low, high));
  return number;
}

}  // namespace maki::wan::mpw
