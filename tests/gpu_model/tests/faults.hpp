// Faults that a test expects.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/call.hpp"

namespace gpu_model {

// What the model finds wrong with the work that `queue` gives to the GPU. The device is well again afterwards.
template <class Queue>
std::vector<Fault> faults_of(const Queue& queue) {
  queue();
  (void)cudaDeviceSynchronize();
  forget_errors();
  return take_faults();
}

// The kinds of all that were found since faults were last taken.
using Kinds = std::vector<std::string>;
inline Kinds kinds_of_faults() {
  Kinds kinds;
  for (const Fault& fault : take_faults()) kinds.push_back(fault.kind);
  return kinds;
}

// Of a program that dies of a fault, what it wrote is looked at.
class DeathTest : public testing::Test {
 protected:
  DeathTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    write_faults(true);
  }
  ~DeathTest() override { write_faults(false); }
};

class TwoGpusDeathTest : public DeathTest {
 protected:
  TwoGpusDeathTest() { setenv("MAKI_GPU_MODEL_DEVICES", "2", 1); }
  ~TwoGpusDeathTest() override { unsetenv("MAKI_GPU_MODEL_DEVICES"); }
};

}  // namespace gpu_model
