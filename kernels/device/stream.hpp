// An ordered queue of device work. On the CPU work is done when it is called, so the queue is always empty.
#pragma once

namespace maki {

class Stream {
 public:
  Stream();   // throws DeviceError
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void synchronize() const;                 // throws DeviceError: a failure in earlier work shows here
  void* native() const { return native_; }  // cudaStream_t, or nullptr

 private:
  void* native_ = nullptr;
};

}  // namespace maki
