// Clock readings in a stream's queue: work is timed where it is done, and the host does not wait for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "kernels/device/stream.hpp"

namespace maki {

// Marks are numbered 0, 1, ... and kept until clear(). (CUDA: pooled events. CPU: readings of the steady clock.)
class StreamClock {
 public:
  StreamClock();
  ~StreamClock();

  // Reads the clock when all that `stream` holds now is done.
  std::size_t mark(const Stream& stream) noexcept;
  // From one mark to a later one, also of another stream; waits for work that is not done. 0 where a mark failed.
  double seconds(std::size_t from, std::size_t to) const;
  void clear() noexcept;     // all marks may be made anew
  std::size_t made() const;  // events there are: as many as were ever needed at one time, made kChunk at once
  static constexpr std::size_t kChunk = 64;

 private:
  struct Marks;
  std::unique_ptr<Marks> marks_;
};

// How long this rank's own work takes, however many others share the machine: what domains are balanced by.
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

// Wall-clock time on the host.
using WallClock = std::chrono::steady_clock;

inline double seconds_since(WallClock::time_point begin) {
  return std::chrono::duration<double>(WallClock::now() - begin).count();
}

}  // namespace maki
