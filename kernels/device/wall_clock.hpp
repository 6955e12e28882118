// Wall-clock time on the host.
#pragma once

#include <chrono>

namespace maki {

using WallClock = std::chrono::steady_clock;

inline double seconds_since(WallClock::time_point begin) {
  return std::chrono::duration<double>(WallClock::now() - begin).count();
}

}  // namespace maki
