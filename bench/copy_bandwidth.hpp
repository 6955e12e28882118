// The yardstick of phases that move memory.
#pragma once

#include <algorithm>

#include "bench/timing.hpp"
#include "kernels/device/buffer.hpp"

namespace maki::bench {

// The device's memory as a copy sees it: bytes read and written a second.
inline double copy_bandwidth(const Stream& stream) {
  constexpr std::size_t bytes = std::size_t{1} << 28;
  DeviceBuffer<char> from("bench.copy", bytes), to("bench.copy", bytes);
  from.fill_zero(stream);
  double best = 1e30;
  for (int i = 0; i < 8; ++i)
    best = std::min(best, seconds(stream, [&] { copy_on_device(stream, to.data(), from.data(), bytes); }));
  return 2.0 * bytes / best;
}

}  // namespace maki::bench
