// What all calls of the runtime have in common: the devices, the lock, and the errors that they keep.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

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

// The GPUs that are modelled: all of one kind.

struct Gpu {
  std::string name;
  int major = 0, minor = 0;
  int units = 0;  // streaming multiprocessors
  int clock_khz = 0, memory_khz = 0, bus_bits = 0;
  std::size_t memory = 0;                               // bytes
  std::size_t shared_of_unit = 0, shared_of_block = 0;  // the latter where a kernel asks for more than 48 KiB
  unsigned threads_of_unit = 0, blocks_of_unit = 0;
};

inline constexpr std::size_t kSharedOfAll = 48 * 1024;  // bytes that a block may have without asking
inline constexpr std::size_t kReservedShared = 1024;    // bytes of each block that it cannot use itself
inline constexpr unsigned kThreadsOfBlock = 1024;
inline constexpr int kMostDevices = 16;

const Gpu& gpu();    // MAKI_GPU_MODEL=h100|a100|rtx5090
int device_count();  // MAKI_GPU_MODEL_DEVICES, else 1

int current_device();  // of this thread
void select_device(int device);

// The model's lock: every call of the program takes it, and it is held while a piece of work is carried out.

class Lock {
 public:
  Lock() { take(); }
  ~Lock() { release(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void take();
  void release();
  static bool held();  // by this thread
};

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
