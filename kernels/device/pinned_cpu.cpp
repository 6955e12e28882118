#include <cstdlib>
#include <string>

#include "kernels/device/pinned.hpp"
#include "kernels/error.hpp"

namespace maki {

PinnedBuffer::~PinnedBuffer() { release(); }

void PinnedBuffer::release() noexcept {
  std::free(data_);
  data_ = nullptr;
  capacity_ = 0;
}

void PinnedBuffer::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  release();
  data_ = static_cast<char*>(std::malloc(bytes));
  if (data_ == nullptr) throw DeviceError("out of memory for messages", std::to_string(bytes) + " bytes at once");
  capacity_ = bytes;
}

}  // namespace maki
