// CUDA's return codes as DeviceError. Included by CUDA translation units only.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "kernels/device/error.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

inline void check_cuda(cudaError_t code, const char* what) {
  if (code != cudaSuccess)
    throw DeviceError(std::string(what) + " failed", cudaGetErrorString(code),
                      "look for an earlier message; compute-sanitizer finds bad accesses");
}

inline cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

}  // namespace maki
