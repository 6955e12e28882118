// The cold uniform sphere of the Accelerated FDPS benchmark.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/particles/types.hpp"

namespace maki::bench {

// A uniform sphere of radius 1 in a box of side 8: it stays in the middle half while it collapses.
inline std::vector<SourceParticle> sphere(std::size_t n) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> u(-1, 1);
  std::vector<SourceParticle> set;
  while (set.size() < n) {
    const double x = u(random), y = u(random), z = u(random);
    if (x * x + y * y + z * z > 1) continue;
    const auto fixed = [](double v) { return static_cast<std::uint32_t>((0.5 + v / 8) * kSideToUnits); };
    set.push_back({fixed(x), fixed(y), fixed(z), 1.0f / static_cast<float>(n)});
  }
  return set;
}

}  // namespace maki::bench
