// Errors that the runtime keeps: of devices, and of threads.
#pragma once

#include <cuda_runtime_api.h>

namespace gpu_model {

// A cudaError_t that the device does not come back from; 0: none.
int& device_error(int device);
// Devices work again: for tests that expect a fault.
void forget_errors();

// Of this thread: the code of its last call that failed, until it is asked for.
cudaError_t& last_error();
inline cudaError_t remember(cudaError_t code) {
  if (code != cudaSuccess) last_error() = code;
  return code;
}

}  // namespace gpu_model
