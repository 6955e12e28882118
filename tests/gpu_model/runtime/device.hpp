// The GPUs that are modelled: all of one kind.
#pragma once

#include <cstddef>
#include <string>

#include "tests/gpu_model/runtime/errors.hpp"

namespace gpu_model {

struct Gpu {
  std::string name;
  int major = 0, minor = 0;
  int units = 0;  // streaming multiprocessors
  int clock_khz = 0, memory_khz = 0, bus_bits = 0;
  std::size_t memory = 0, cache = 0;                    // bytes
  std::size_t shared_of_unit = 0, shared_of_block = 0;  // the latter where a kernel asks for more than 48 KiB
  unsigned threads_of_unit = 0, blocks_of_unit = 0;
};

inline constexpr std::size_t kSharedOfAll = 48 * 1024;  // bytes that a block may have without asking
inline constexpr std::size_t kReservedShared = 1024;    // bytes of each block that it cannot use itself
inline constexpr unsigned kThreadsOfBlock = 1024;
inline constexpr int kMostDevices = 16;

const Gpu& gpu();    // MAKI_GPU_MODEL=h100|a100|rtx5090, MAKI_GPU_MODEL_MEMORY=MiB
int device_count();  // MAKI_GPU_MODEL_DEVICES, else 1

int current_device();  // of this thread
void select_device(int device);

}  // namespace gpu_model
