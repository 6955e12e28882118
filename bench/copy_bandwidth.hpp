// The yardstick of phases that move memory.
#pragma once

#include <algorithm>

#include "kernels/device/buffer.hpp"
#include "kernels/device/stream.hpp"

namespace maki::bench {

// The device's memory as a copy sees it: bytes read and written a second, by the stream's clock, as phases are timed: what
// the host takes to queue a copy and to wait for it would count as the copy's on a fast GPU.
inline double copy_bandwidth(const Stream& stream) {
  constexpr std::size_t bytes = std::size_t{1} << 28;
  DeviceBuffer<char> from("bench.copy", bytes), to("bench.copy", bytes);
  from.fill_zero(stream);
  StreamClock clock;
  double best = 1e30;
  for (int i = 0; i < 8; ++i) {
    const std::size_t begin = clock.mark(stream);
    copy_on_device(stream, to.data(), from.data(), bytes);
    best = std::min(best, clock.seconds(begin, clock.mark(stream)));
  }
  return 2.0 * bytes / best;
}

}  // namespace maki::bench
