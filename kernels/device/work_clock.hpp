// How long this rank's own work takes, however many others share the machine: what domains are balanced by.
#pragma once

#include "kernels/device/stream.hpp"
#include "kernels/device/timer.hpp"

namespace maki {

// CUDA: time between marks in the stream's queue. CPU: processor time of the process over its threads, which neither
// waiting for others nor sharing a core counts into.
class WorkClock {
 public:
  void begin(const Stream& stream);
  void end(const Stream& stream);
  // Seconds of all pairs of begin() and end() since the last call; waits for their work.
  double take();

 private:
  StreamClock clock_;
  std::size_t pairs_ = 0;
  double begun_ = 0, seconds_ = 0;
};

}  // namespace maki
