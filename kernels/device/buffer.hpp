// Arrays in device memory: typed arrays, vectors by component, and small results that the host fetches together.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/device/memory.hpp"
#include "kernels/device/stream.hpp"

namespace maki {

// Owns `size` elements of T in device memory; the name appears in memory reports and in out-of-memory errors. Elements
// are not initialised. Kernels take views (data() and size()); the owner stays on the host.
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

  // Contents are lost when the buffer has to grow. Growth leaves `headroom` (a fraction) free, so that an array that
  // grows slowly does not allocate in every step.
  void resize(std::size_t size, double headroom = 0.0) {
    if (size > capacity_) {
      pool_release(data_);
      data_ = nullptr;
      size_ = capacity_ = 0;  // stays 0 where allocation fails
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

  // From a host array of `count` elements; resizes.
  void upload(const Stream& stream, const T* from, std::size_t count) {
    resize(count);
    copy_to_device(stream, data_, from, count * sizeof(T));
  }
  void upload(const Stream& stream, const std::vector<T>& from) { upload(stream, from.data(), from.size()); }

  // Resizes.
  void copy_from(const Stream& stream, const DeviceBuffer& other) {
    resize(other.size_);
    copy_on_device(stream, data_, other.data_, size_ * sizeof(T));
  }

  // Blocks until the copy is complete.
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

// Three float arrays of one length: the components of one vector for each particle.
struct VectorView {
  float* x;
  float* y;
  float* z;
};

struct ConstVectorView {
  const float* x;
  const float* y;
  const float* z;
};

struct VectorArray {
  explicit VectorArray(const char* name) : x(name), y(name), z(name) {}
  void resize(std::size_t n) {
    x.resize(n);
    y.resize(n);
    z.resize(n);
  }
  void fill_zero(const Stream& stream) {
    x.fill_zero(stream);
    y.fill_zero(stream);
    z.fill_zero(stream);
  }
  void copy_from(const Stream& stream, const VectorArray& other) {
    x.copy_from(stream, other.x);
    y.copy_from(stream, other.y);
    z.copy_from(stream, other.z);
  }
  // Blocks until the copy is complete.
  std::vector<std::array<float, 3>> download(const Stream& stream) const {
    std::vector<std::array<float, 3>> host(size());
    const DeviceBuffer<float>* const axes[3] = {&x, &y, &z};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::vector<float> component = axes[axis]->download(stream);
      for (std::size_t i = 0; i < host.size(); ++i) host[i][axis] = component[i];
    }
    return host;
  }
  VectorView view() { return {x.data(), y.data(), z.data()}; }
  ConstVectorView view() const { return {x.data(), y.data(), z.data()}; }
  std::size_t size() const { return x.size(); }

  DeviceBuffer<float> x, y, z;
};

// Small results of kernels that the host reads together: many places on the device, one copy, one wait.

// A place for one T in a Results object; the pointer is to device memory.
template <class T>
struct Result {
  T* place = nullptr;
};

// make() reserves places, kernels queued on the same stream write to them, and fetch() copies all of them to the host.
// They can be read from then until the next make().
class Results {
 public:
  // `name`: of the buffer in memory reports.
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
  // Waits, once, for all work queued on `stream`.
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
