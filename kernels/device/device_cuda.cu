#include <omp.h>

#include <string>

#include "kernels/device/device.hpp"
#include "kernels/device/launch.cuh"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define MAKI_NVTX 1
#endif

namespace maki {
namespace {
int selected = 0;
}  // namespace

const char* backend_name() { return "cuda"; }

void select_device(int ordinal, int threads) {
  if (threads > 0) omp_set_num_threads(threads);
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (!succeeded(code) || count == 0)
    throw DeviceError("this build of Maki needs an NVIDIA GPU and found none",
                      code != cudaSuccess ? cudaGetErrorString(code) : "no device",
                      "check nvidia-smi and the driver, or build for the CPU with 'make BACKEND=cpu'");
  if (ordinal < 0 || ordinal >= count)
    throw DeviceError("there is no GPU number " + std::to_string(ordinal), "this machine has " + std::to_string(count),
                      "choose run.device between 0 and " + std::to_string(count - 1));
  check_cuda(cudaSetDevice(ordinal), "selecting the GPU");
  selected = ordinal;
}

DeviceInfo device_info() {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, selected), "asking the GPU for its properties");
  int clock_khz = 0;
  check_cuda(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, selected), "asking the GPU for its clock");
  DeviceInfo info;
  info.backend = backend_name();
  info.name = properties.name;
  info.instruction_set = "sm_" + std::to_string(properties.major * 10 + properties.minor);
  info.units = properties.multiProcessorCount;
  info.clock_ghz = clock_khz * 1e-6;
  int memory_khz = 0, bus_bits = 0, driver = 0, runtime = 0;
  check_cuda(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, selected),
             "asking the GPU for its memory");
  check_cuda(cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, selected),
             "asking the GPU for its memory");
  info.memory_gb_per_s = 2e-6 * memory_khz * bus_bits / 8;  // two transfers a clock
  check_cuda(cudaDriverGetVersion(&driver), "asking for the driver's version");
  check_cuda(cudaRuntimeGetVersion(&runtime), "asking for the runtime's version");
  const auto text = [](int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  info.driver = "driver " + text(driver) + ", runtime " + text(runtime);
  check_cuda(cudaMemGetInfo(&info.memory_free, &info.memory_total), "asking the GPU for its memory");
  return info;
}

int device_count() {
  int count = 0;
  return succeeded(cudaGetDeviceCount(&count)) ? count : 0;
}

std::string device_address() {
  char place[32] = "";
  check_cuda(cudaDeviceGetPCIBusId(place, sizeof place, selected), "asking the GPU for its place");
  return place;
}

int unit_count() {
  int units = 0;
  check_cuda(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, selected), "asking the GPU for its size");
  return units;
}

unsigned blocks_with_shared_memory(std::size_t bytes) {
  const auto attribute = [](cudaDeviceAttr which) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, which, selected), "asking the GPU for its shared memory");
    return static_cast<std::size_t>(value);
  };
  if (bytes > attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) return 0;
  return static_cast<unsigned>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) /
                               (bytes + attribute(cudaDevAttrReservedSharedMemoryPerBlock)));
}

int thread_count() { return omp_get_max_threads(); }

void check_launch(const char* name) {
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess)
    throw DeviceError(std::string("kernel ") + name + " failed", cudaGetErrorString(code),
                      "was this binary built for this GPU's architecture (maki --version)?");
}

void allow_shared_memory(const char* name, const void* kernel, std::size_t bytes) {
  const cudaError_t code =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (!succeeded(code))
    throw DeviceError(std::string("kernel ") + name + " cannot have " + std::to_string(bytes) +
                          " bytes of shared memory",
                      cudaGetErrorString(code), "GPUs from compute capability 8.0 on are supported");
}

#ifdef MAKI_NVTX
void begin_phase_range(const char* name) { nvtxRangePushA(name); }
void end_phase_range() { nvtxRangePop(); }
#else
void begin_phase_range(const char*) {}
void end_phase_range() {}
#endif

}  // namespace maki
