// The one stream of a test's thread. Streams that run beside each other need lanes of the pool of their own
// (kernels/device/memory.hpp), which tests have no reason to give them.
#pragma once

#include "kernels/device/stream.hpp"

namespace maki::test {

inline const Stream& test_stream() {
  thread_local const Stream stream;
  return stream;
}

}  // namespace maki::test
