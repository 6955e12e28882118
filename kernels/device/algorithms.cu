#include "kernels/device/algorithms.hpp"

#include <thrust/scan.h>

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

void exclusive_scan(const Stream& stream, const std::uint32_t* in, std::uint32_t* out, std::size_t n) {
  scan(stream, in, out, n);
}

void exclusive_scan(const Stream& stream, const std::uint32_t* in, std::uint64_t* out, std::size_t n) {
  scan(stream, in, out, n);
}

}  // namespace maki
