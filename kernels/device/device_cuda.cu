#include "kernels/device/device.hpp"

#include <omp.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/launch.cuh"
#include "kernels/device/stream.hpp"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define MAKI_NVTX 1
#endif

namespace maki {
namespace {

int selected = 0;
std::atomic<bool> was_used = false, selected_in_turn = false;
constexpr int kLeastCapability = 8;  // warp reductions, asynchronous copies
thread_local StreamWaiter stream_waiter = nullptr;

std::string release_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

int attribute(int device, cudaDeviceAttr which, const char* what) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, device), what);
  return value;
}

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

// Shows before a run has begun whether this binary has code for the selected GPU.
__global__ void any_kernel() {}

// What decides which GPUs this process sees.
std::string sight() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible ? "CUDA_VISIBLE_DEVICES is '" + std::string(visible) + "'" : "CUDA_VISIBLE_DEVICES is not set";
}

}  // namespace

const char* backend_name() { return "cuda"; }

void select_device(int ordinal, int threads) {
  if (threads > 0) omp_set_num_threads(threads);
  was_used = true;
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  int driver = 0;
  if (!succeeded(code) && code == cudaErrorInsufficientDriver && succeeded(cudaDriverGetVersion(&driver)) && driver > 0)
    throw DeviceError("the driver of this machine's GPU is too old for this build of Maki",
                      "it is of CUDA " + release_text(driver) + ", the build of " + release_text(CUDART_VERSION),
                      "update the driver, build with an older toolkit, or for the CPU with 'make BACKEND=cpu'");
  if (!succeeded(code) || count == 0)
    throw DeviceError(
        "this build of Maki needs an NVIDIA GPU and found none",
        (code != cudaSuccess ? cudaGetErrorString(code) : "no device") + ("; " + sight()),
        code == cudaErrorSystemNotReady
            ? advice_for(code)
            : "check nvidia-smi and the driver, ask the batch system for GPUs (--gpus-per-node), or build "
              "for the CPU with 'make BACKEND=cpu'");
  if (ordinal < 0 || ordinal >= count)
    throw DeviceError("there is no GPU number " + std::to_string(ordinal),
                      "this process sees " + std::to_string(count) + "; " + sight(),
                      "choose run.device between 0 and " + std::to_string(count - 1) + ", or leave it out");
  const int capability = attribute(ordinal, cudaDevAttrComputeCapabilityMajor, "asking the GPU for its architecture");
  if (capability < kLeastCapability)
    throw DeviceError("GPU number " + std::to_string(ordinal) + " is too old",
                      "its compute capability is " + std::to_string(capability) + ".x, and Maki needs " +
                          std::to_string(kLeastCapability) + ".0",
                      count > 1 ? "choose another by run.device, or hide it with CUDA_VISIBLE_DEVICES"
                                : "use a newer one (Ampere, 2020), or build for the CPU with 'make BACKEND=cpu'");
  check_cuda(cudaSetDevice(ordinal), "selecting the GPU");
  cudaFuncAttributes found{};
  check_cuda(cudaFuncGetAttributes(&found, any_kernel), "loading code for the GPU");
  selected = ordinal;
  selected_in_turn = true;
}

bool device_was_used() { return was_used; }

static std::mutex& turns() {
  static auto* const instance = new std::mutex;  // threads may outlive static destruction
  return *instance;
}

DeviceTurn::DeviceTurn() {
  turns().lock();
  selected_in_turn = false;
}

// A failure of the work shows in the next call too.
DeviceTurn::~DeviceTurn() {
  if (selected_in_turn) succeeded(cudaDeviceSynchronize());
  turns().unlock();
}

DeviceInfo device_info() {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, selected), "asking the GPU for its properties");
  DeviceInfo info;
  info.backend = backend_name();
  info.name = properties.name;
  info.instruction_set = "sm_" + std::to_string(properties.major * 10 + properties.minor);
  info.units = properties.multiProcessorCount;
  info.clock_ghz = attribute(selected, cudaDevAttrClockRate, "asking the GPU for its clock") * 1e-6;
  const int memory_khz = attribute(selected, cudaDevAttrMemoryClockRate, "asking the GPU for its memory");
  const int bus_bits = attribute(selected, cudaDevAttrGlobalMemoryBusWidth, "asking the GPU for its memory");
  info.memory_gb_per_s = 2e-6 * memory_khz * bus_bits / 8;  // two transfers a clock
  int driver = 0, runtime = 0;
  check_cuda(cudaDriverGetVersion(&driver), "asking for the driver's version");
  check_cuda(cudaRuntimeGetVersion(&runtime), "asking for the runtime's version");
  info.driver = "driver " + release_text(driver) + ", runtime " + release_text(runtime);
  check_cuda(cudaMemGetInfo(&info.memory_free, &info.memory_total), "asking the GPU for its memory");
  return info;
}

int device_count() {
  was_used = true;
  int count = 0;
  return succeeded(cudaGetDeviceCount(&count)) ? count : 0;
}

std::vector<std::string> device_addresses() {
  std::vector<std::string> all;
  for (int device = 0, count = device_count(); device < count; ++device) {
    char place[32] = "";
    const bool known = succeeded(cudaDeviceGetPCIBusId(place, sizeof place, device));
    all.push_back(known ? place : "unknown");
  }
  return all;
}

std::string device_address() {
  char place[32] = "";
  check_cuda(cudaDeviceGetPCIBusId(place, sizeof place, selected), "asking the GPU for its place");
  return place;
}

int unit_count() { return attribute(selected, cudaDevAttrMultiProcessorCount, "asking the GPU for its size"); }

unsigned blocks_with_shared_memory(std::size_t bytes) {
  const auto limit = [](cudaDeviceAttr which) {
    return static_cast<std::size_t>(attribute(selected, which, "asking the GPU for its shared memory"));
  };
  if (bytes > limit(cudaDevAttrMaxSharedMemoryPerBlockOptin)) return 0;
  return static_cast<unsigned>(limit(cudaDevAttrMaxSharedMemoryPerMultiprocessor) /
                               (bytes + limit(cudaDevAttrReservedSharedMemoryPerBlock)));
}

int thread_count() { return omp_get_max_threads(); }

const char* advice_for(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "the GPU has no memory left, also not for code and stacks of kernels: use fewer particles, or see what else "
             "runs on it (nvidia-smi)";
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceAlreadyInUse:
      return "another process has this GPU for itself (compute mode 'exclusive process', nvidia-smi -q -d COMPUTE): give "
             "each one of its own (run.device, CUDA_VISIBLE_DEVICES, fewer ranks a node)";
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
      return "the hardware of this GPU has failed: resume on other nodes, and tell who runs this one (dmesg has the "
             "driver's messages, Xid)";
    case cudaErrorSystemNotReady:
      return "the GPUs of this node are not ready: its service nvidia-fabricmanager may not run";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return "this binary was built for other GPUs: build it on this machine, or with CUDA_ARCHS=all";
    case cudaErrorUnsupportedPtxVersion:
      return "this binary was built for other GPUs, and this driver is older than the toolkit that built it: build it on "
             "this machine, or update the driver";
    default:
      return "an earlier kernel may have failed, or the GPU itself: see the driver's messages (dmesg, Xid); "
             "CUDA_LAUNCH_BLOCKING=1 finds the kernel, and compute-sanitizer a bad access";
  }
}

void check_launch(const char* name) {
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess)
    throw DeviceError(std::string("kernel ") + name + " failed", cudaGetErrorString(code), advice_for(code));
}

void allow_shared_memory(const char* name, const void* kernel, std::size_t bytes) {
  const cudaError_t code =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (!succeeded(code))
    throw DeviceError(std::string("kernel ") + name + " cannot have " + std::to_string(bytes) +
                          " bytes of shared memory",
                      cudaGetErrorString(code), "see what else runs on the GPU (nvidia-smi)");
}

#ifdef MAKI_NVTX
void begin_phase_range(const char* name) { nvtxRangePushA(name); }
void end_phase_range() { nvtxRangePop(); }
#else
void begin_phase_range(const char*) {}
void end_phase_range() {}
#endif

Stream::Stream(StreamPriority priority) {
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for the priorities of streams");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          priority == StreamPriority::kNormal ? greatest : least),
             "making a stream");
  native_ = stream;
}

// After this, other streams reuse the blocks that this one's work has used. Failures here cannot be reported.
Stream::~Stream() {
  try {
    synchronize();
  } catch (const Error&) {
  }
  succeeded(cudaStreamDestroy(static_cast<cudaStream_t>(native_)));
}

void set_stream_waiter(StreamWaiter waiter) { stream_waiter = waiter; }

void Stream::synchronize() const {
  if (stream_waiter) {
    reached_.set(*this);
    stream_waiter([this] { return reached_.reached(); });
  }
  check_cuda(cudaStreamSynchronize(maki::native(*this)), "work on the GPU");
}

void Stream::wait_for(const Stream& other) const {
  other.reached_.set(other);
  other.reached_.hold_back(*this);
}

StreamMark::StreamMark() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  event_ = event;
}

StreamMark::~StreamMark() {
  if (event_) succeeded(cudaEventDestroy(event_of(event_)));
}

StreamMark::StreamMark(StreamMark&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

StreamMark& StreamMark::operator=(StreamMark&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}

void StreamMark::set(const Stream& stream) {
  check_cuda(cudaEventRecord(event_of(event_), native(stream)), "marking a stream's place");
}

bool StreamMark::reached() const { return is_reached(event_of(event_)); }

void StreamMark::hold_back(const Stream& later) const {
  check_cuda(cudaStreamWaitEvent(native(later), event_of(event_), 0), "waiting for another stream");
}

// A mark is made even where its event could not be recorded; the failure shows where the work is waited for.
struct StreamClock::Marks {
  std::vector<cudaEvent_t> events;
  std::vector<bool> recorded;
  std::size_t used = 0;

  void grow() {
    for (std::size_t i = 0; i < StreamClock::kChunk; ++i) {
      cudaEvent_t event = nullptr;
      if (!succeeded(cudaEventCreate(&event))) event = nullptr;
      events.push_back(event);
      recorded.push_back(false);
    }
  }
};

StreamClock::StreamClock() : marks_(std::make_unique<Marks>()) {}

StreamClock::~StreamClock() {
  for (const cudaEvent_t event : marks_->events)
    if (event) succeeded(cudaEventDestroy(event));
}

std::size_t StreamClock::mark(const Stream& stream) noexcept {
  Marks& m = *marks_;
  if (m.used == m.events.size()) m.grow();
  const std::size_t i = m.used++;
  m.recorded[i] = m.events[i] && succeeded(cudaEventRecord(m.events[i], native(stream)));
  return i;
}

double StreamClock::seconds(std::size_t from, std::size_t to) const {
  const Marks& m = *marks_;
  if (!m.recorded[from] || !m.recorded[to]) return 0;
  if (stream_waiter) stream_waiter([event = m.events[to]] { return is_reached(event); });
  float milliseconds = 0;
  if (!succeeded(cudaEventSynchronize(m.events[from])) || !succeeded(cudaEventSynchronize(m.events[to]))) return 0;
  return succeeded(cudaEventElapsedTime(&milliseconds, m.events[from], m.events[to])) ? 1e-3 * milliseconds : 0;
}

void StreamClock::clear() noexcept { marks_->used = 0; }
std::size_t StreamClock::made() const { return marks_->events.size(); }

// Pair k has the marks 2 k and 2 k + 1.
void WorkClock::begin(const Stream& stream) { clock_.mark(stream); }

void WorkClock::end(const Stream& stream) {
  clock_.mark(stream);
  ++pairs_;
  constexpr std::size_t most = 512;  // some callers rarely take
  if (pairs_ == most) seconds_ = take();
}

double WorkClock::take() {
  double seconds = seconds_;
  for (std::size_t k = 0; k < pairs_; ++k) seconds += clock_.seconds(2 * k, 2 * k + 1);
  clock_.clear();
  pairs_ = 0;
  seconds_ = 0;
  return seconds;
}

}  // namespace maki
