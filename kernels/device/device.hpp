// The machine that runs the kernels: its name, size and memory, and the check that it is there.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace maki {

struct DeviceInfo {
  std::string backend;           // "cuda" or "cpu"
  std::string name;              // "NVIDIA H100 80GB HBM3", or the processor's name
  std::string instruction_set;   // "sm_90", or "avx512" | "avx2" | "scalar" (what the CPU kernels use)
  int units = 0;                 // multiprocessors, or threads in use
  double clock_ghz = 0;          // 0 where unknown
  double memory_gb_per_s = 0;    // from the memory's clock and bus width, 10^9 bytes; 0 where unknown
  std::string driver;            // "driver 13.0, runtime 13.0", or empty
  std::size_t memory_total = 0;  // bytes
  std::size_t memory_free = 0;   // bytes; CPU: what this process may still take (host_memory_available)
};

// "cuda" or "cpu": what this binary was built for. Needs no device.
const char* backend_name();

// Picks the device (CUDA: `ordinal`; CPU: sets the thread count to `threads`, 0 keeps the OpenMP default).
// Throws DeviceError where a CUDA build finds no usable GPU.
void select_device(int ordinal, int threads);

// Whether this process has asked CUDA for anything; a process that is forked later cannot. Always false on the CPU.
bool device_was_used();

// This thread's turn with the GPU; other threads wait for theirs. The end of a turn waits for all work on the device
// that was selected in it. So streams, buffers and what owns them may go from thread to thread between turns: no block
// that was released in one turn is still used by queued work in the next. On the CPU, where nothing is ever queued,
// threads need not wait.
class DeviceTurn {
 public:
  DeviceTurn();
  ~DeviceTurn();
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;
};

// GPUs that this process sees; 1 on the CPU. 0 where there are none.
int device_count();

// The selected device. Throws DeviceError as select_device().
DeviceInfo device_info();

// The PCI bus addresses of the GPUs that this process sees, unique on its machine, "unknown" where CUDA does not tell.
// None on the CPU.
std::vector<std::string> device_addresses();
// That of the selected GPU; empty on the CPU.
std::string device_address();

// Multiprocessors of the selected device, or threads in use. Cheap, unlike device_info().
int unit_count();

// CPU: threads used by kernels. CUDA: host threads.
int thread_count();

// Named ranges on a profiler's timeline (NVTX): Nsight Systems shows the phases of a step beside the kernels that they
// queue. Without a profiler a call costs some nanoseconds on the GPU, nothing on the CPU. Ranges of one thread nest.
// `name` is copied where it is needed.
void begin_phase_range(const char* name);
void end_phase_range();

}  // namespace maki
