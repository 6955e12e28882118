// What all calls of the runtime have in common: the lock, and the errors that they keep.
#pragma once

#include "tests/gpu_model/runtime/device.hpp"
#include "tests/gpu_model/runtime/lock.hpp"

namespace gpu_model {

// A call that fails where the current device has failed, before it or while it waits.
template <class F>
cudaError_t call(F body) {
  Lock lock;
  const int& broken = device_error(current_device());
  if (broken) return remember(static_cast<cudaError_t>(broken));
  const cudaError_t code = body(lock);
  return remember(code == cudaSuccess && broken ? static_cast<cudaError_t>(broken) : code);
}

}  // namespace gpu_model
