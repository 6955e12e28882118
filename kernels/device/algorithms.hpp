// Sort, scan and selection over device arrays (plain functions that hide the libraries), and copies of boxes of cells.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

// Stable radix sort of `keys`, ascending, which carries along `values`, of the same length. Scratch: 12 bytes an
// element, in two blocks with the sizes of keys and values; the buffers may end up owning these blocks.
void sort_by_key(const Stream& stream, DeviceBuffer<std::uint64_t>& keys, DeviceBuffer<std::uint32_t>& values);

// out[i] = sum of in[0..i), for i in [0, n]; `out` has room for n+1 elements, out[n] is the total. Out
// is std::uint32_t or std::uint64_t.
template <class Out>
void exclusive_scan(const Stream& stream, const std::uint32_t* in, Out* out, std::size_t n);

// Fills `indices` (resized) with the i in [0, n) where flags[i] = 1, ascending; flags are 0 or 1. Returns their number.
std::uint32_t select_flagged(const Stream& stream, const std::uint32_t* flags, std::size_t n,
                             DeviceBuffer<std::uint32_t>& indices);

// Copies a box of cells between arrays of different order: packing, unpacking and transposing a mesh.
struct BoxCopy {
  std::array<std::size_t, 3> count;      // of the box along three axes
  std::array<std::size_t, 3> from_step;  // elements to the next one along each axis; 1 along one of them
  std::array<std::size_t, 3> to_step;    // likewise; 1 along the last
};

// to[sum_a i_a to_step_a] = from[sum_a i_a from_step_a] for all i_a in [0, count_a). The two do not overlap.
// T is std::complex<float>, float or std::uint64_t.
template <class T>
void copy_box(const Stream& stream, const BoxCopy& box, const T* from, T* to);

// As copy_box(), but adds to the elements of `to`.
void add_box(const Stream& stream, const BoxCopy& box, const std::uint64_t* from, std::uint64_t* to);

}  // namespace maki
