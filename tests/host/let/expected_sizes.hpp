// What the papers expect local essential trees to hold, beside which ours are reported.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace maki {

// Accelerated FDPS (Iwasawa et al. 2020), eq. 42: entries (particles and cells) that one of `ranks` processes imports
// where each has `n` particles and `close` of the others are near enough for a message; opening angle theta, no cutoff.
// The logarithm counts shells of distant cells: none where the whole set is smaller than the first.
inline double fdps_let_entries(double n, double ranks, double theta, double close) {
  const double side = std::cbrt(n), shells = theta / 2.8 * (std::cbrt(n * ranks) - side);
  return 14 * side * side / theta + 21 * std::numbers::pi * side / (theta * theta) +
         28 * std::numbers::pi / (3 * theta * theta * theta) * std::max(0.0, std::log2(shells)) + ranks - close;
}

// SUSHI (Groen et al. 2011), the middle term of eq. 8: bytes of local essential trees that one of `ranks` processes
// exchanges in a TreePM step over `particles` in all; fitted to 0.2 <= theta <= 0.75.
inline double sushi_let_bytes(double particles, double ranks, double theta) {
  const double side = std::cbrt(particles / ranks);
  return (144 / theta + 72) * side * side;
}

// SUSHI, the middle term of eq. 12: bytes of local essential trees that a site sends in a step.
inline double sushi_site_let_bytes(double particles, double theta) {
  const double side = std::cbrt(particles);
  return (48 / theta + 24) * side * side;
}

}  // namespace maki
