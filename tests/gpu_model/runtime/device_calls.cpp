#include <algorithm>
#include <cstdio>

#include "tests/gpu_model/memory/address_space.hpp"
#include "tests/gpu_model/report.hpp"
#include "tests/gpu_model/runtime/call.hpp"
#include "tests/gpu_model/runtime/streams.hpp"

using namespace gpu_model;

namespace {

constexpr int kVersion = 13000;

bool exists(int device) { return device >= 0 && device < device_count(); }

// What Maki and CUB ask for. False: the model does not know it.
bool attribute(cudaDeviceAttr which, int& value) {
  const Gpu& g = gpu();
  switch (which) {
    case cudaDevAttrMaxGridDimX: value = 0x7fffffff; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: value = kSharedOfAll; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: value = static_cast<int>(g.shared_of_block); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: value = static_cast<int>(g.shared_of_unit); break;
    case cudaDevAttrReservedSharedMemoryPerBlock: value = kReservedShared; break;
    case cudaDevAttrClockRate: value = g.clock_khz; break;
    case cudaDevAttrMemoryClockRate: value = g.memory_khz; break;
    case cudaDevAttrGlobalMemoryBusWidth: value = g.bus_bits; break;
    case cudaDevAttrMultiProcessorCount: value = g.units; break;
    case cudaDevAttrComputeCapabilityMajor: value = g.major; break;
    case cudaDevAttrComputeCapabilityMinor: value = g.minor; break;
    case cudaDevAttrUnifiedAddressing: value = 1; break;
    default: return false;
  }
  return true;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!exists(device)) return remember(cudaErrorInvalidDevice);
  select_device(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  if (!exists(device)) return remember(cudaErrorInvalidDevice);
  if (attribute(which, *value)) return cudaSuccess;
  report({"not modelled", "cudaDeviceGetAttribute", "attribute no. " + std::to_string(which)});
  return remember(cudaErrorInvalidValue);
}

// Those that Maki reads; all others are zero.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int device) {
  if (!exists(device)) return remember(cudaErrorInvalidDevice);
  const Gpu& g = gpu();
  *to = {};
  std::snprintf(to->name, sizeof to->name, "%s", g.name.c_str());
  to->major = g.major;
  to->minor = g.minor;
  to->multiProcessorCount = g.units;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* to, int bytes, int device) {
  if (!exists(device)) return remember(cudaErrorInvalidDevice);
  const int written = std::snprintf(to, static_cast<std::size_t>(std::max(bytes, 0)), "0000:%02X:00.0", 0x18 + device);
  return written < bytes ? cudaSuccess : remember(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  return call([](Lock& lock) {
    wait_for_device(lock, current_device());
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call([&](Lock&) {
    *total = gpu().memory;
    *free = gpu().memory - device_bytes_used(current_device());
    return cudaSuccess;
  });
}
}
