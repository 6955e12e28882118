// Executions of cuFFT's plans, as work on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "tests/gpu_model/libraries/fft_engine.hpp"
#include "tests/gpu_model/memory/address_space.hpp"

namespace gpu_model {

struct FftExecution {
  std::shared_ptr<FftEngine> engine;
  FftShape shape;
  int direction = CUFFT_FORWARD;
  Address in = 0, out = 0;
  Address work_area = 0;
  std::size_t work_bytes = 0;
  std::string what;
};

// Bytes that a plan asks for. cuFFT's manual gives no figures. Here: as much as the data; several times that for lengths
// with large primes; nothing for short lines of a power of two.
std::size_t work_area_bytes(const FftShape& shape);

// Queues it. Reports faults of kinds "FFT layout", "FFT alignment" at once; false where it cannot be carried out.
bool queue_fft(cudaStream_t stream, FftExecution execution);

}  // namespace gpu_model
