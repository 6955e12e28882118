// Clock readings in a stream's queue: work is timed where it is done, and the host does not wait for it.
#pragma once

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

}  // namespace maki
