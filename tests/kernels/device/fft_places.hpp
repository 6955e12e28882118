// Places of cells and modes in the meshes of RealFft3d.
#pragma once

#include <cstddef>

#include "kernels/device/blocked_fft.hpp"
#include "kernels/device/fft.hpp"

namespace maki::test {

inline std::size_t cell_at(const RealFft3d& fft, std::size_t x, std::size_t y, std::size_t z) {
  return (x * fft.lines() + y) * fft.row() + z;
}

// The first float of a mode, kz = 0 ... m/2.
inline std::size_t mode_at(const RealFft3d& fft, std::size_t kx, std::size_t ky, std::size_t kz) {
  if (const BlockedFft* blocks = fft.blocks()) return ky * blocks->plane() + kz * blocks->mode_row() + 2 * kx;
  return (kx * fft.lines() + ky) * fft.row() + 2 * kz;
}

}  // namespace maki::test
