// A coordinate with its remainder: 48 bits, 2^48 to a side.
#pragma once

#include <cstdint>

#include "kernels/device/macros.hpp"

namespace maki {

inline constexpr double kSideToFine = 281474976710656.0;

// Rounded to the nearest; bits above the 48th drop out where they are split: that is the periodic wrap.
MAKI_HD std::uint64_t to_fine(double sides) {
  const double fine = sides * kSideToFine;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(fine + (fine < 0 ? -0.5 : 0.5)));
}

MAKI_HD std::uint32_t coordinate_of(std::uint64_t fine) { return static_cast<std::uint32_t>(fine >> 16); }

}  // namespace maki
