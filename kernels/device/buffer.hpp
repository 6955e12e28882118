// A typed array in device memory.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/device/memory.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

// Owns `size` elements of T in device memory; the name appears in memory reports and in out-of-memory errors.
// Elements are not initialised. Views (data() and size()) go into kernels, the owner stays on the host.
template <class T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit DeviceBuffer(const char* name, std::size_t size = 0) : name_(name) { resize(size); }
  ~DeviceBuffer() { pool_release(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  const char* name() const { return name_; }

  // Contents are lost when the buffer has to grow. Growth leaves `headroom` (a fraction) free, so that
  // sizes that creep up do not allocate in every step.
  void resize(std::size_t size, double headroom = 0.0) {
    if (size > capacity_) {
      pool_release(data_);
      data_ = nullptr;
      size_ = capacity_ = 0;  // stays so where there is no memory
      const auto wanted = size + static_cast<std::size_t>(headroom * static_cast<double>(size));
      data_ = static_cast<T*>(pool_allocate(name_, wanted * sizeof(T)));
      capacity_ = wanted;
    }
    size_ = size;
    pool_set_extent(data_, size * sizeof(T));
  }

  // Gives the memory back to the pool.
  void release() {
    pool_release(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  void swap(DeviceBuffer& other) noexcept {
    std::swap(name_, other.name_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  void fill_zero(const Stream& stream) { maki::fill_zero(stream, data_, size_ * sizeof(T)); }

  // Host array in, same length; resizes.
  void upload(const Stream& stream, const T* from, std::size_t count) {
    resize(count);
    copy_to_device(stream, data_, from, count * sizeof(T));
  }
  void upload(const Stream& stream, const std::vector<T>& from) { upload(stream, from.data(), from.size()); }

  // Blocks until the copy is there.
  std::vector<T> download(const Stream& stream) const {
    std::vector<T> host(size_);
    copy_to_host(stream, host.data(), data_, size_ * sizeof(T));
    return host;
  }

 private:
  const char* name_ = "";
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace maki
