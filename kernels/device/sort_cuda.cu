// CUB's radix sort. The second halves of its double buffers come from the pool with the arrays' own sizes, so that the
// reordering of the particles reuses these blocks.
#include "kernels/error.hpp"

#include <cub/device/device_radix_sort.cuh>

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"

namespace maki {

void sort_by_key(const Stream& stream, DeviceBuffer<std::uint64_t>& keys, DeviceBuffer<std::uint32_t>& values) {
  if (keys.size() != values.size()) throw Error("sort_by_key: keys and values differ in length");
  const std::size_t n = keys.size();
  if (n < 2) return;
  DeviceBuffer<std::uint64_t> other_keys(keys.name(), n);
  DeviceBuffer<std::uint32_t> other_values(values.name(), n);
  cub::DoubleBuffer<std::uint64_t> k(keys.data(), other_keys.data());
  cub::DoubleBuffer<std::uint32_t> v(values.data(), other_values.data());
  const auto sort = [&](void* scratch, std::size_t& bytes) {
    check_cuda(cub::DeviceRadixSort::SortPairs(scratch, bytes, k, v, static_cast<std::uint32_t>(n), 0, 64,
                                               native(stream)),
               "radix sort");
  };
  std::size_t bytes = 0;
  sort(nullptr, bytes);
  DeviceBuffer<unsigned char> scratch("sort.scratch", bytes > 0 ? bytes : 1);
  sort(scratch.data(), bytes);
  if (k.Current() != keys.data()) keys.swap(other_keys);
  if (v.Current() != values.data()) values.swap(other_values);
}

}  // namespace maki
