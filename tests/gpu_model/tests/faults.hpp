// Faults that a test expects.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/errors.hpp"

namespace gpu_model {

// What the model finds wrong with the work that `queue` gives to the GPU. The device is well again afterwards.
template <class Queue>
std::vector<Fault> faults_of(const Queue& queue) {
  const Expected quiet;
  queue();
  (void)cudaDeviceSynchronize();
  forget_errors();
  return take_faults();
}

inline std::string to_string(const Fault& f) { return f.kind + ": " + f.where + ": " + f.text; }

}  // namespace gpu_model
