// The number formats of particles.
//
// Coordinates are fixed point: a uint32 is a fraction of the box side, x / L = value * 2^-32. Periodic wrapping is
// unsigned overflow, the separation to the nearest image is the signed difference. Lengths inside kernels are in
// units of the box side, masses in units of the run; an acceleration is sum m r / r^3 in mass / side^2 with G = 1,
// a potential -sum m / r in mass / side. Callers multiply by G / L^2 and G / L.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/device/macros.hpp"

namespace maki {

inline constexpr double kSideToUnits = 4294967296.0;            // 2^32 units of the last bit to a side
inline constexpr float kUnitsToSide = 2.3283064365386963e-10f;  // 2^-32
inline constexpr std::uint64_t kUnitsOfSide = std::uint64_t{1} << 32;
// A softening of fewer units is refused (docs/design.md, "Numbers").
inline constexpr double kLeastSofteningUnits = 256;

// A particle as force evaluation reads it: 16 bytes, loaded as one vector.
struct alignas(16) SourceParticle {
  std::uint32_t x, y, z;  // fixed point
  float mass;
  bool operator==(const SourceParticle&) const = default;
};

// Separation `to - from` on the periodic lattice, in units of the last bit.
MAKI_HD std::int32_t signed_difference(std::uint32_t to, std::uint32_t from) {
  return static_cast<std::int32_t>(to - from);
}
// Whether a coordinate is farther than `reach` from `middle`.
MAKI_HD bool beyond(std::uint32_t coordinate, std::uint32_t middle, std::int64_t reach) {
  const std::int64_t d = signed_difference(coordinate, middle);
  return d > reach || -d > reach;
}

// Separation in units of the side: an exact difference, then one rounding.
MAKI_HD float separation(std::uint32_t to, std::uint32_t from) {
  return static_cast<float>(signed_difference(to, from)) * kUnitsToSide;
}

// A coordinate with its remainder: 48 bits, 2^48 to a side.
inline constexpr double kSideToFine = 281474976710656.0;

// Rounded to the nearest, in units of 2^-48 sides. Bits above the 48th are dropped when the parts are split: the
// periodic wrap.
MAKI_HD std::uint64_t rounded_fine(double fine) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(fine + std::copysign(0.5, fine)));
}
MAKI_HD std::uint64_t to_fine(double sides) { return rounded_fine(sides * kSideToFine); }

// A float as a double. A GPU has few units for doubles, so there integer operations move the bits. Subnormal floats
// become zero there, as GPUs read them (-ftz=true).
MAKI_HD double widened(float value) {
#if defined(__CUDA_ARCH__)
  const unsigned bits = __float_as_uint(value), sign = bits & 0x80000000u, rest = bits & 0x7fffffffu;
  const unsigned bias = rest >= 0x7f800000u ? 0x70000000u : rest >= 0x00800000u ? 0x38000000u : 0u;
  return bias == 0 ? __hiloint2double(static_cast<int>(sign), 0)
                   : __hiloint2double(static_cast<int>(sign | (bias + (rest >> 3))), static_cast<int>(rest << 29));
#else
  return value;
#endif
}

MAKI_HD std::uint32_t coordinate_of(std::uint64_t fine) { return static_cast<std::uint32_t>(fine >> 16); }

// The 48-bit coordinate, from its two parts.
MAKI_HD std::uint64_t fine_of(std::uint32_t coordinate, std::uint16_t remainder) {
  return (static_cast<std::uint64_t>(coordinate) << 16) | remainder;
}

// As a fraction of the side of the box.
inline double fraction_of(std::uint32_t coordinate, std::uint16_t remainder) {
  return static_cast<double>(fine_of(coordinate, remainder)) / kSideToFine;
}

}  // namespace maki
