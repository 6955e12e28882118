#include <gtest/gtest.h>
#include "kernels/device/buffer.hpp"
#include "kernels/device/cooperative.cuh"

namespace maki {
namespace {

__global__ void scan_kernel(const unsigned* in, unsigned* out) {
  __shared__ unsigned totals[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = in[i];
  for (unsigned d = 1; d < 32; d *= 2) {
    const unsigned left = __shfl_up_sync(kAllLanes, sum, d);
    if (lane >= d) sum += left;
  }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  for (unsigned w = 0; w < warp; ++w) sum += totals[w];
  out[i] = sum;
}

TEST(Simt, BlockScan) {
  Stream stream;
  const unsigned block = 128, grid = 3;
  std::vector<unsigned> values(block * grid);
  for (unsigned i = 0; i < values.size(); ++i) values[i] = i * i % 17;
  DeviceBuffer<unsigned> in("in"), out("out", values.size());
  in.upload(stream, values);
  simt::for_seeds(20, [&](std::uint64_t) {
    launch_blocks(stream, "scan", {grid, block}, scan_kernel, in.data(), out.data());
    const auto result = out.download(stream);
    for (unsigned b = 0; b < grid; ++b) {
      unsigned sum = 0;
      for (unsigned i = 0; i < block; ++i) ASSERT_EQ(result[b * block + i], sum += values[b * block + i]);
    }
  });
}

}  // namespace
}  // namespace maki
