// Sets of particles for tests of what happens to them between ranks.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

#include "host/domain/multisection.hpp"
#include "tests/host/domain/fields.hpp"

namespace maki::test {

inline std::uint32_t to_fixed(double fraction) {
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(std::floor(fraction * 0x1p32)));
}

// A Plummer sphere of n particles about `centre`, its scale radius in sides; those beyond 0.2 sides are left out.
inline std::vector<SamplePoint> plummer_set(std::size_t n, std::array<double, 3> centre, double scale,
                                            std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(1e-9, 1);
  std::vector<SamplePoint> points;
  while (points.size() < n) {
    const double r = scale / std::sqrt(std::pow(uniform(random), -2.0 / 3) - 1);
    if (!(r < 0.2)) continue;
    const double cosine = 2 * uniform(random) - 1, sine = std::sqrt(1 - cosine * cosine);
    const double angle = 2 * std::numbers::pi * uniform(random);
    points.push_back({to_fixed(centre[0] + r * sine * std::cos(angle)),
                      to_fixed(centre[1] + r * sine * std::sin(angle)), to_fixed(centre[2] + r * cosine)});
  }
  return points;
}

// Clumps of log-normal richness at uniform places, Plummer spheres each, periodic.
inline std::vector<SamplePoint> clump_set(std::size_t n, std::size_t clumps, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> richness(0, 1.5);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> mass(clumps);
  double sum = 0;
  for (double& m : mass) sum += m = richness(random);
  std::vector<SamplePoint> points;
  for (std::size_t c = 0; c < clumps; ++c) {
    const auto members = static_cast<std::size_t>(static_cast<double>(n) * mass[c] / sum);
    const std::array<double, 3> centre{uniform(random), uniform(random), uniform(random)};
    const auto clump = plummer_set(members, centre, 0.003 * std::cbrt(mass[c]), seed + 1 + c);
    points.insert(points.end(), clump.begin(), clump.end());
  }
  return points;
}

}  // namespace maki::test
