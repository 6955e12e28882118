// The rank whose domain holds a position, for kernels and for the host: views of plain arrays.
#pragma once

#include <cstdint>

#include "kernels/device/macros.hpp"

namespace maki {

// Index of the last of `n` ascending starts that is not above `at`; 0 where none is.
template <class T>
MAKI_HD std::uint32_t interval_of(const T* starts, std::uint32_t n, T at) {
  std::uint32_t low = 0, high = n;  // starts[low] <= at < starts[high]
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    if (starts[middle] <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Where intervals begin. Slab i is [x[i], x[i+1]) along x; its column j is [y[i ny + j], ...) along y; the column's
// cell k is [z[(i ny + j) nz + k], ...) along z. Each axis begins at 0 and ends at 2^32. Starts ascend; of equal starts
// the last has the interval and the others are empty.
struct DomainView {
  const std::uint32_t* x;
  const std::uint32_t* y;
  const std::uint32_t* z;
  std::uint32_t nx, ny, nz;

  MAKI_HD std::uint32_t rank_of(std::uint32_t px, std::uint32_t py, std::uint32_t pz) const {
    const std::uint32_t slab = interval_of(x, nx, px);
    const std::uint32_t column = slab * ny + interval_of(y + slab * ny, ny, py);
    return column * nz + interval_of(z + column * nz, nz, pz);
  }
};

}  // namespace maki
