// Places of cells and modes in the meshes of RealFft3d.
#pragma once

#include <cstddef>

#include "kernels/device/blocked_fft.hpp"
#include "kernels/device/fft.hpp"

namespace maki::test {

inline std::size_t cell_at(const RealFft3d& fft, int x, int y, int z) {
  return (static_cast<std::size_t>(x) * fft.lines() + static_cast<std::size_t>(y)) * fft.row() +
         static_cast<std::size_t>(z);
}

// The first float of a mode, kz = 0 ... m/2.
inline std::size_t mode_at(const RealFft3d& fft, int k0, int k1, int k2) {
  const auto kx = static_cast<std::size_t>(k0), ky = static_cast<std::size_t>(k1), kz = static_cast<std::size_t>(k2);
  if (const BlockedFft* blocks = fft.blocks()) return ky * blocks->plane() + kz * blocks->mode_row() + 2 * kx;
  return (kx * fft.lines() + ky) * fft.row() + 2 * kz;
}

}  // namespace maki::test
