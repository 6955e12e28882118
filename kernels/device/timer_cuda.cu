#include <vector>

#include "kernels/device/cuda_check.cuh"
#include "kernels/device/timer.hpp"

namespace maki {

// A mark whose event could not be recorded is there all the same; the failure shows where the work is waited for.
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

// Marks 2 k and 2 k + 1 are those of pair k.
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
