// The 48-bit coordinate of a particle, from its two parts.
#pragma once

#include <cstdint>

#include "kernels/device/macros.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

MAKI_HD std::uint64_t join(std::uint32_t coordinate, std::uint16_t remainder) {
  return (static_cast<std::uint64_t>(coordinate) << 16) | remainder;
}

// As a fraction of the side of the box.
inline double fraction_of(std::uint32_t coordinate, std::uint16_t remainder) {
  return static_cast<double>(join(coordinate, remainder)) / kSideToFine;
}

}  // namespace maki
