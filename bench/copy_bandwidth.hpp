// The yardstick of phases that move memory.
#pragma once

#include <algorithm>
#include <chrono>

#include "kernels/device/buffer.hpp"

namespace maki::bench {

// The device's memory as a copy sees it: bytes read and written a second.
inline double copy_bandwidth(const Stream& stream) {
  constexpr std::size_t bytes = std::size_t{1} << 28;
  DeviceBuffer<char> from("bench.copy", bytes), to("bench.copy", bytes);
  from.fill_zero(stream);
  double best = 1e30;
  for (int i = 0; i < 8; ++i) {
    stream.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    copy_on_device(stream, to.data(), from.data(), bytes);
    stream.synchronize();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return 2.0 * bytes / best;
}

}  // namespace maki::bench
