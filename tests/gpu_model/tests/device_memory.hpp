// Memory of the modelled GPU for tests.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gpu_model {

// `n` values on the current device, or in page-locked memory; an address even where there are none.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t n, bool page_locked = false) : n_(n), page_locked_(page_locked) {
    const std::size_t bytes = std::max<std::size_t>(n * sizeof(T), 1);
    EXPECT_EQ(page_locked ? cudaMallocHost(&data_, bytes) : cudaMalloc(&data_, bytes), cudaSuccess);
  }
  explicit OnDevice(const std::vector<T>& v) : OnDevice(v.size()) { put(v); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { page_locked_ ? cudaFreeHost(data_) : cudaFree(data_); }

  void put(const std::vector<T>& v) {
    EXPECT_EQ(cudaMemcpy(data_, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  std::vector<T> get() const {
    std::vector<T> v(n_);
    EXPECT_EQ(cudaMemcpy(v.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return v;
  }
  std::size_t size() const { return n_; }
  T* data() const { return static_cast<T*>(data_); }
  template <class U>
  U* as() const {
    return static_cast<U*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t n_;
  bool page_locked_;
};

}  // namespace gpu_model
