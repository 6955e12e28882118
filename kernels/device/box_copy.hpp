// Copies a box of cells between arrays of different order: packing, unpacking and transposing a mesh.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>

#include "kernels/device/stream.hpp"

namespace maki {

struct BoxCopy {
  std::array<std::size_t, 3> count;      // of the box along three axes
  std::array<std::size_t, 3> from_step;  // elements to the next one along each axis; 1 along one of them
  std::array<std::size_t, 3> to_step;    // likewise; 1 along the last
};

// to[sum_a i_a to_step_a] = from[sum_a i_a from_step_a] for all i_a in [0, count_a). The two do not overlap.
// T is std::complex<float>, std::complex<double>, float or std::uint64_t.
template <class T>
void copy_box(const Stream& stream, const BoxCopy& box, const T* from, T* to);

// The same, but adds to the elements of `to`.
void add_box(const Stream& stream, const BoxCopy& box, const std::uint64_t* from, std::uint64_t* to);

}  // namespace maki
