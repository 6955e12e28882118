#include "kernels/device/algorithms.hpp"

#include <thrust/scan.h>
#include <thrust/sort.h>

#include "kernels/device/error.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"

namespace maki {
namespace {

template <class Out>
struct LastSum {
  const std::uint32_t* in;
  Out* out;
  std::size_t n;
  MAKI_HD void operator()(std::size_t) const { out[n] = out[n - 1] + in[n - 1]; }
};

template <class Out>
struct SetZero {
  Out* out;
  MAKI_HD void operator()(std::size_t) const { out[0] = 0; }
};

template <class Out>
void scan(const Stream& stream, const std::uint32_t* in, Out* out, std::size_t n) {
  if (n == 0) return launch(stream, "scan_empty", 1, SetZero<Out>{out});
  PoolAllocator allocator{"scan.scratch"};
  thrust::exclusive_scan(thrust_policy(stream, allocator), in, in + n, out, Out{0});
  launch(stream, "scan_total", 1, LastSum<Out>{in, out, n});
}

}  // namespace

void sort_by_key(const Stream& stream, DeviceBuffer<std::uint64_t>& keys, DeviceBuffer<std::uint32_t>& values) {
  if (keys.size() != values.size())
    throw Error("sort_by_key: keys and values differ in length");
  PoolAllocator allocator{"sort.scratch"};
  thrust::stable_sort_by_key(thrust_policy(stream, allocator), keys.data(), keys.data() + keys.size(), values.data());
}

void exclusive_scan(const Stream& stream, const std::uint32_t* in, std::uint32_t* out, std::size_t n) {
  scan(stream, in, out, n);
}

void exclusive_scan(const Stream& stream, const std::uint32_t* in, std::uint64_t* out, std::size_t n) {
  scan(stream, in, out, n);
}

}  // namespace maki
