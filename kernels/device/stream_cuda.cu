#include <utility>

#include "kernels/device/cuda_check.cuh"
#include "kernels/device/stream.hpp"

namespace maki {
namespace {

thread_local StreamWaiter stream_waiter = nullptr;

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

Stream::Stream(StreamPriority priority) {
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for the priorities of streams");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          priority == StreamPriority::kNormal ? greatest : least),
             "making a stream");
  native_ = stream;
  cudaEvent_t event = nullptr;
  if (const cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventDisableTiming); code != cudaSuccess) {
    succeeded(cudaStreamDestroy(stream));
    check_cuda(code, "making an event");
  }
  reached_ = event;
}

// Blocks that its work has used go to other streams after this. A failure has nobody to tell.
Stream::~Stream() {
  try {
    synchronize();
  } catch (const Error&) {
  }
  succeeded(cudaEventDestroy(static_cast<cudaEvent_t>(reached_)));
  succeeded(cudaStreamDestroy(static_cast<cudaStream_t>(native_)));
}

void set_stream_waiter(StreamWaiter waiter) { stream_waiter = waiter; }

void look_after_others(cudaEvent_t event) {
  if (stream_waiter) stream_waiter([event] { return is_reached(event); });
}

void Stream::synchronize() const {
  if (stream_waiter) {
    const auto event = static_cast<cudaEvent_t>(reached_);
    check_cuda(cudaEventRecord(event, maki::native(*this)), "marking a stream's place");
    look_after_others(event);
  }
  check_cuda(cudaStreamSynchronize(maki::native(*this)), "work on the GPU");
}

void Stream::wait_for(const Stream& other) const {
  const auto event = static_cast<cudaEvent_t>(other.reached_);
  check_cuda(cudaEventRecord(event, maki::native(other)), "marking a stream's place");
  check_cuda(cudaStreamWaitEvent(maki::native(*this), event, 0), "waiting for another stream");
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

}  // namespace maki
