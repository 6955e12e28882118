// Wall-clock seconds of work on a stream.
#pragma once

#include <chrono>

#include "kernels/device/stream.hpp"

namespace maki::bench {

// From an idle stream until all that f queues is done.
template <class F>
double seconds(const Stream& stream, const F& f) {
  stream.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  f();
  stream.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace maki::bench
