// Kernels whose threads each give a result.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/launch.cuh"

namespace gpu_model {

inline constexpr unsigned kBlockOfTwo = 64;  // threads: two warps

// The results of kernel(results, arguments...) in a block of two warps; the same in a few orders of threads.
template <class T, class... Parameters, class... Arguments>
std::vector<T> in_each_thread(void (*kernel)(T*, Parameters...), Arguments... arguments) {
  const maki::Stream stream;
  maki::DeviceBuffer<T> out("out", kBlockOfTwo);
  std::vector<T> first;
  for (int n = 0; n < 4; ++n) {  // each launch draws another order
    maki::launch_blocks(stream, "each", {1, kBlockOfTwo}, kernel, out.data(), arguments...);
    const std::vector<T> now = out.download(stream);
    if (first.empty()) first = now;
    EXPECT_TRUE(now == first);
  }
  return first;
}

MAKI_HD unsigned some_number(unsigned i) { return i * 2654435761u >> 7; }

}  // namespace gpu_model
