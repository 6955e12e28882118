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

struct StoreFlagged {
  const std::uint32_t* flags;
  const std::uint32_t* place;
  std::uint32_t* indices;
  MAKI_HD void operator()(std::size_t i) const {
    if (flags[i]) indices[place[i]] = static_cast<std::uint32_t>(i);
  }
};

}  // namespace

template <class Out>
void exclusive_scan(const Stream& stream, const std::uint32_t* in, Out* out, std::size_t n) {
  if (n == 0) return fill_zero(stream, out, sizeof *out);
  PoolAllocator allocator{"scan.scratch"};
  thrust::exclusive_scan(thrust_policy(stream, allocator), in, in + n, out, Out{0});
  launch(stream, "scan_total", 1, LastSum<Out>{in, out, n});
}
template void exclusive_scan(const Stream&, const std::uint32_t*, std::uint32_t*, std::size_t);
template void exclusive_scan(const Stream&, const std::uint32_t*, std::uint64_t*, std::size_t);

std::uint32_t select_flagged(const Stream& stream, const std::uint32_t* flags, std::size_t n,
                             DeviceBuffer<std::uint32_t>& indices) {
  DeviceBuffer<std::uint32_t> place("select.scratch", n + 1);
  exclusive_scan(stream, flags, place.data(), n);
  std::uint32_t total = 0;
  copy_to_host(stream, &total, place.data() + n, sizeof total);
  indices.resize(total, 0.5);
  if (total > 0) launch(stream, "select_flagged", n, StoreFlagged{flags, place.data(), indices.data()});
  return total;
}

}  // namespace maki
