// Host memory that the device copies from and to at full speed (page-locked); plain memory on the CPU.
#pragma once

#include <cstddef>

namespace maki {

// Grows, never shrinks, and loses its contents when it grows: for staging.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  ~PinnedBuffer();
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  // Throws DeviceError where the system does not lock as much.
  void reserve(std::size_t bytes);
  char* data() { return data_; }
  std::size_t capacity() const { return capacity_; }

 private:
  void release() noexcept;
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace maki
