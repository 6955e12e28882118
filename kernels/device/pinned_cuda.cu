#include "kernels/device/cuda_check.cuh"
#include "kernels/device/pinned.hpp"

namespace maki {

PinnedBuffer::~PinnedBuffer() { release(); }

void PinnedBuffer::release() noexcept {
  succeeded(cudaFreeHost(data_));
  data_ = nullptr;
  capacity_ = 0;
}

void PinnedBuffer::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  release();
  void* block = nullptr;
  check_cuda(cudaMallocHost(&block, bytes), "page-locked host memory for messages");
  data_ = static_cast<char*>(block);
  capacity_ = bytes;
}

}  // namespace maki
