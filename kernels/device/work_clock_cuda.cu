#include "kernels/device/work_clock.hpp"

namespace maki {

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
