#include "kernels/device/async_copy.hpp"
#include "kernels/device/cuda_check.cuh"

#include <utility>

namespace maki {
namespace {
cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }
}  // namespace

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
