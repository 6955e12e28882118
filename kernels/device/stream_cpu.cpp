#include "kernels/device/stream.hpp"

#include <omp.h>
#include <time.h>

#include <chrono>
#include <utility>
#include <vector>

namespace maki {

Stream::Stream(StreamPriority) {}
Stream::~Stream() = default;
void Stream::synchronize() const {}
void set_stream_waiter(StreamWaiter) {}  // nothing is ever queued
void Stream::wait_for(const Stream&) const {}

StreamMark::StreamMark() = default;
StreamMark::~StreamMark() = default;
StreamMark::StreamMark(StreamMark&&) noexcept = default;
StreamMark& StreamMark::operator=(StreamMark&&) noexcept = default;
void StreamMark::set(const Stream&) {}
bool StreamMark::reached() const { return true; }
void StreamMark::hold_back(const Stream&) const {}

struct StreamClock::Marks {
  std::vector<std::chrono::steady_clock::time_point> times;
  std::size_t most = 0;
};

StreamClock::StreamClock() : marks_(std::make_unique<Marks>()) {}
StreamClock::~StreamClock() = default;

std::size_t StreamClock::mark(const Stream&) noexcept {
  marks_->times.push_back(std::chrono::steady_clock::now());
  if (marks_->times.size() > marks_->most) marks_->most = marks_->times.size();
  return marks_->times.size() - 1;
}

double StreamClock::seconds(std::size_t from, std::size_t to) const {
  return std::chrono::duration<double>(marks_->times[to] - marks_->times[from]).count();
}

void StreamClock::clear() noexcept { marks_->times.clear(); }
std::size_t StreamClock::made() const { return (marks_->most + kChunk - 1) / kChunk * kChunk; }

namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

void WorkClock::begin(const Stream&) { begun_ = processor_seconds(); }
void WorkClock::end(const Stream&) { seconds_ += (processor_seconds() - begun_) / omp_get_max_threads(); }
double WorkClock::take() { return std::exchange(seconds_, 0.0); }

}  // namespace maki
