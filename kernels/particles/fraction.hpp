// Coordinates on the host, as fractions of the side of the box.
#pragma once

#include <cstdint>

#include "kernels/particles/types.hpp"

namespace maki {

// With the 16 bits that the drift carries below the last one (Remainder).
inline double fraction_of(std::uint32_t coordinate, std::uint16_t remainder) {
  return static_cast<double>(static_cast<std::uint64_t>(coordinate) << 16 | remainder) / kSideToFine;
}

}  // namespace maki
