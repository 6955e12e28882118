// An ordered queue of device work, marks in it, and clocks read in it. On the CPU work is done when it is called, so
// the queue is always empty.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace maki {

class Stream;

// A place in a stream's queue, which the host can poll without waiting.
class StreamMark {
 public:
  StreamMark();  // reached from the start; throws DeviceError
  ~StreamMark();
  StreamMark(StreamMark&& other) noexcept;
  StreamMark& operator=(StreamMark&& other) noexcept;

  // Puts the mark behind all work that `stream` holds now. Throws DeviceError.
  void set(const Stream& stream);
  // Whether the work before the mark is complete. Throws DeviceError where that work failed.
  bool reached() const;
  // Work queued on `later` from now on begins after the mark is reached. The host does not wait. Throws DeviceError.
  void hold_back(const Stream& later) const;

 private:
  void* event_ = nullptr;  // cudaEvent_t, or nullptr
};

// Where several streams have work ready, kBackground work yields to the others.
enum class StreamPriority { kNormal, kBackground };

class Stream {
 public:
  explicit Stream(StreamPriority priority = StreamPriority::kNormal);  // throws DeviceError
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Waits for all queued work. Throws DeviceError for failures in earlier work, and what a StreamWaiter throws.
  void synchronize() const;
  // Work queued here from now on begins after all work that `other` holds now. The host does not wait. Throws
  // DeviceError.
  void wait_for(const Stream& other) const;
  void* native() const { return native_; }  // cudaStream_t, or nullptr

 private:
  void* native_ = nullptr;
  mutable StreamMark reached_;  // for which others wait
};

// Queued work may wait for other processes (NCCL), and these may be lost. The code that queues such work installs a
// waiter, called before every wait for the device. It returns when `reached` is true, or earlier where no such work is
// under way any more. It throws Error where processes are lost; the streams then come to their ends.
using StreamWaiter = void (*)(const std::function<bool()>& reached);
// Sets the waiter of the calling thread; nullptr for none.
void set_stream_waiter(StreamWaiter waiter);

// Clock readings in a stream's queue: they time the work where it is done, and the host does not wait.

// Marks are numbered 0, 1, ... and kept until clear(). (CUDA: pooled events. CPU: readings of the steady clock.)
class StreamClock {
 public:
  StreamClock();
  ~StreamClock();

  // Reads the clock once all work that `stream` holds now is complete.
  std::size_t mark(const Stream& stream) noexcept;
  // Time from one mark to a later one, possibly of another stream; waits for pending work. 0 where a mark failed.
  double seconds(std::size_t from, std::size_t to) const;
  void clear() noexcept;     // all marks may be reused
  std::size_t made() const;  // existing events: the most marks needed at one time, made kChunk at once
  static constexpr std::size_t kChunk = 64;

 private:
  struct Marks;
  std::unique_ptr<Marks> marks_;
};

// The time of this rank's own work, by which domains are balanced. CUDA: time between marks in the stream's queue. CPU:
// processor time of the process divided by its threads, which excludes waits and other processes on the same core.
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
