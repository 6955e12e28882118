// CUDA's return codes as DeviceError. Included by CUDA translation units only.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"

namespace maki {

// Whether a call succeeded. CUDA keeps the code of a failed call for the next cudaGetLastError(), which would be the
// check of an unrelated launch: so the code is cleared here. Every call goes through this or check_cuda().
inline bool succeeded(cudaError_t code) noexcept {
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
  return code == cudaSuccess;
}

inline void check_cuda(cudaError_t code, const char* what) {
  if (!succeeded(code))
    throw DeviceError(std::string(what) + " failed", cudaGetErrorString(code),
                      "look for an earlier message; compute-sanitizer finds bad accesses");
}

// Whether the work before the event is done. Throws DeviceError where that work failed.
inline bool is_reached(cudaEvent_t event) {
  const cudaError_t code = cudaEventQuery(event);
  if (!succeeded(code) && code == cudaErrorNotReady) return false;
  check_cuda(code, "work on the GPU");
  return true;
}

// Calls the thread's StreamWaiter; to be called before the host waits for the event (set_stream_waiter).
void look_after_others(cudaEvent_t event);

inline cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

}  // namespace maki
