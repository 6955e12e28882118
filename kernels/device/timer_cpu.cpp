#include <chrono>
#include <vector>

#include "kernels/device/timer.hpp"

namespace maki {

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

}  // namespace maki
