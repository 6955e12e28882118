// Memory of the modelled GPU for tests.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace gpu_model {

struct TestStream {
  cudaStream_t handle = nullptr;
  TestStream() { EXPECT_EQ(cudaStreamCreateWithPriority(&handle, cudaStreamNonBlocking, 0), cudaSuccess); }
  ~TestStream() {
    cudaStreamSynchronize(handle);
    cudaStreamDestroy(handle);
  }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  void wait() const { EXPECT_EQ(cudaStreamSynchronize(handle), cudaSuccess); }
};

// The current device's for copies by OnDevice, and for what has none of its own.
inline const TestStream& common_stream() {
  static auto* streams = new std::map<int, TestStream>;
  int device = 0;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  return (*streams)[device];
}

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

  void put(const std::vector<T>& v) { copy(data_, v.data(), v.size(), cudaMemcpyHostToDevice); }
  std::vector<T> get() const {
    std::vector<T> v(n_);
    copy(v.data(), data_, n_, cudaMemcpyDeviceToHost);
    return v;
  }
  std::size_t size() const { return n_; }
  T* data() const { return static_cast<T*>(data_); }
  template <class U>
  U* as() const {
    return static_cast<U*>(data_);
  }

 private:
  static void copy(void* to, const void* from, std::size_t n, cudaMemcpyKind kind) {
    EXPECT_EQ(cudaMemcpyAsync(to, from, n * sizeof(T), kind, common_stream().handle), cudaSuccess);
    common_stream().wait();
  }

  void* data_ = nullptr;
  std::size_t n_;
  bool page_locked_;
};

}  // namespace gpu_model
