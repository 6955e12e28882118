// An ordered queue of device work, and marks in it. On the CPU work is done when it is called, so the queue is always
// empty.
#pragma once

#include <functional>

namespace maki {

// Where work of several streams is ready at a time, that of kBackground waits for the others.
enum class StreamPriority { kNormal, kBackground };

class Stream {
 public:
  explicit Stream(StreamPriority priority = StreamPriority::kNormal);  // throws DeviceError
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Throws DeviceError: a failure in earlier work shows here. With a StreamWaiter also what that throws.
  void synchronize() const;
  // Work queued here from now on begins after all that `other` holds now. The host does not wait. Throws DeviceError.
  void wait_for(const Stream& other) const;
  void* native() const { return native_; }  // cudaStream_t, or nullptr

 private:
  void* native_ = nullptr;
  void* reached_ = nullptr;  // the event that others wait for
};

// A place in a stream's queue, which the host polls without waiting.
class StreamMark {
 public:
  StreamMark();  // reached from the start; throws DeviceError
  ~StreamMark();
  StreamMark(StreamMark&& other) noexcept;
  StreamMark& operator=(StreamMark&& other) noexcept;

  // Puts the mark behind all work that `stream` holds now. Throws DeviceError.
  void set(const Stream& stream);
  // Whether the work before the mark is done. Throws DeviceError where that work failed.
  bool reached() const;
  // Work queued on `later` from now on begins after the mark is reached. The host does not wait. Throws DeviceError.
  void hold_back(const Stream& later) const;

 private:
  void* event_ = nullptr;  // cudaEvent_t, or nullptr
};

// Queued work may wait for other processes (NCCL), which may be lost. The code that queues such work installs a waiter,
// which is called before every wait for the device: it returns when `reached` says true, or earlier where no such work
// is under way any more. Throws Error where processes are lost; streams then come to their ends.
using StreamWaiter = void (*)(const std::function<bool()>& reached);
// Sets the waiter of the calling thread; nullptr for none.
void set_stream_waiter(StreamWaiter waiter);

}  // namespace maki
