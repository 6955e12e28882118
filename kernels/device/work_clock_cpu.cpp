#include <omp.h>
#include <time.h>

#include <utility>

#include "kernels/device/work_clock.hpp"

namespace maki {
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
