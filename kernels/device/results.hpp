// Small results of kernels that the host looks at together: many places on the device, one copy, one wait.
#pragma once

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "kernels/device/buffer.hpp"
#include "kernels/device/memory.hpp"

namespace maki {

// A place for one T in a Results object. The pointer is to device memory.
template <class T>
struct Result {
  T* place = nullptr;
};

// Places are made, kernels queued on the same stream write to them, and fetch() brings them all to the host. Reading is
// possible from then until the next make().
class Results {
 public:
  // `name`: of the memory, in reports.
  explicit Results(const char* name) : device_(name, kRoom) { host_.reserve(kRoom); }

  // A new place, all bits zero. Throws std::logic_error where kRoom bytes are used up.
  template <class T>
  Result<T> make(const Stream& stream) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    constexpr std::size_t bytes = (sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    void* const place = take(bytes);
    fill_zero(stream, place, bytes);
    return {static_cast<T*>(place)};
  }
  // Waits, once, for all that `stream` holds.
  void fetch(const Stream& stream) {
    fetched_ = true;
    copy_to_host(stream, host_.data(), device_.data(), used_);
  }
  template <class T>
  T operator[](Result<T> result) {
    T value;
    std::memcpy(&value, host_.data() + (reinterpret_cast<const char*>(result.place) - device_.data()), sizeof value);
    return value;
  }

  static constexpr std::size_t kRoom = 1024, kAlignment = 16;

 private:
  void* take(std::size_t bytes) {
    if (fetched_) used_ = 0;
    fetched_ = false;
    const std::size_t begin = used_;
    used_ += bytes;
    if (used_ > kRoom) throw std::logic_error("more results than there is room for");
    return device_.data() + begin;
  }

  DeviceBuffer<char> device_;
  PinnedBuffer host_;
  std::size_t used_ = 0;
  bool fetched_ = false;
};

}  // namespace maki
