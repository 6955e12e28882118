// Copies that go on while the host works, and marks in a stream's queue that the host polls without waiting.
#pragma once

#include <cstddef>

#include "kernels/device/stream.hpp"

namespace maki {

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

// As copy_to_device() and copy_to_host(), counted with them, but without waiting: the host's side is page-locked memory
// (PinnedBuffer) and left alone until `stream` has come past the copy. Throw DeviceError.
void queue_copy_to_device(const Stream& stream, void* to, const void* pinned, std::size_t bytes);
void queue_copy_to_host(const Stream& stream, void* pinned, const void* from, std::size_t bytes);

}  // namespace maki
