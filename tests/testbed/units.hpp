// Numbers with units, as people write them: 270ms, 800Mbit, 10MB.
#pragma once

#include <cstdlib>
#include <map>
#include <string>

#include "wan/net/error.hpp"

namespace maki::testbed {

// All throw wan::Error for what is no such thing.

inline double parse_number(const std::string& text, const std::map<std::string, double>& units,
                           const std::string& example) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  while (*end == ' ') ++end;
  const auto unit = units.find(end);
  if (end == text.c_str() || unit == units.end() || !(number >= 0))
    throw wan::Error("'" + text + "' is not understood", "a number and a unit", "as in " + example);
  return number * unit->second;
}

// A bare number is seconds.
inline double parse_seconds(const std::string& text) {
  return parse_number(text, {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}}, "270ms");
}

// Bits a second; "100MB" are bytes a second.
inline double parse_rate(const std::string& text) {
  return parse_number(
      text, {{"", 1}, {"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"kB", 8e3}, {"MB", 8e6}, {"GB", 8e9}},
      "800Mbit");
}

inline double parse_bytes(const std::string& text) {
  return parse_number(text, {{"", 1}, {"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"KiB", 1024}, {"MiB", 1048576}},
                      "10MB");
}

}  // namespace maki::testbed
