// cuFFT's return codes as DeviceError. Included by CUDA translation units only.
#pragma once

#include <cufft.h>

#include <string>

#include "kernels/error.hpp"

namespace maki {

inline void check_fft(cufftResult code, const char* what) {
  if (code != CUFFT_SUCCESS)
    throw DeviceError(std::string(what) + " failed", "cuFFT error " + std::to_string(code),
                      "use a smaller mesh if memory is short");
}

}  // namespace maki
