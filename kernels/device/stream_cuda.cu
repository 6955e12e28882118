#include <utility>
#include <vector>

#include "kernels/device/launch.cuh"
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

// After this, other streams reuse the blocks that this one's work has used. Failures here cannot be reported.
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
  look_after_others(m.events[to]);
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
