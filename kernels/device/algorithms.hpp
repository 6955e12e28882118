// Sort, scan and selection over device arrays (libraries behind plain functions).
#pragma once

#include <cstdint>

#include "kernels/device/buffer.hpp"

namespace maki {

// Sorts `keys` ascending and carries `values` along; stable. Both have the same length. Radix sort on both backends:
// 12 bytes an element of scratch, in two blocks of the sizes of keys and values, with which the buffers may change
// places.
void sort_by_key(const Stream& stream, DeviceBuffer<std::uint64_t>& keys, DeviceBuffer<std::uint32_t>& values);

// out[i] = sum of in[0..i), for i in [0, n]; `out` has room for n+1 elements, out[n] is the total.
void exclusive_scan(const Stream& stream, const std::uint32_t* in, std::uint32_t* out, std::size_t n);
void exclusive_scan(const Stream& stream, const std::uint32_t* in, std::uint64_t* out, std::size_t n);

// The i in [0, n) with flags[i] = 1, ascending, into `indices` (resized); flags are 0 or 1. Returns how many.
std::uint32_t select_flagged(const Stream& stream, const std::uint32_t* flags, std::size_t n,
                             DeviceBuffer<std::uint32_t>& indices);

}  // namespace maki
