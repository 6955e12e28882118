// An ordered queue of device work. On the CPU work is done when it is called, so the queue is always empty.
#pragma once

namespace maki {

// Where work of several streams is ready at a time, that of kBackground waits for the others.
enum class StreamPriority { kNormal, kBackground };

class Stream {
 public:
  explicit Stream(StreamPriority priority = StreamPriority::kNormal);  // throws DeviceError
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void synchronize() const;                 // throws DeviceError: a failure in earlier work shows here
  // Work queued here from now on begins after all that `other` holds now. The host does not wait. Throws DeviceError.
  void wait_for(const Stream& other) const;
  void* native() const { return native_; }  // cudaStream_t, or nullptr

 private:
  void* native_ = nullptr;
  void* reached_ = nullptr;  // the event that others wait for
};

}  // namespace maki
