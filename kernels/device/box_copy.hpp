// Copies a box of complex numbers between arrays of different order: packing, unpacking and transposing a mesh.
#pragma once

#include <array>
#include <complex>
#include <cstddef>

#include "kernels/device/stream.hpp"

namespace maki {

struct BoxCopy {
  std::array<std::size_t, 3> count;      // of the box along three axes
  std::array<std::size_t, 3> from_step;  // elements to the next one along each axis; 1 along one of them
  std::array<std::size_t, 3> to_step;    // likewise; 1 along the last
};

// to[sum_a i_a to_step_a] = from[sum_a i_a from_step_a] for all i_a in [0, count_a). The two do not overlap.
void copy_box(const Stream& stream, const BoxCopy& box, const std::complex<float>* from, std::complex<float>* to);

}  // namespace maki
