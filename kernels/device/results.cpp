#include "kernels/device/results.hpp"

#include <stdexcept>

namespace maki {

void* Results::take(std::size_t bytes) {
  if (fetched_) used_ = 0;
  fetched_ = false;
  const std::size_t begin = used_;
  used_ += bytes;
  if (used_ > kRoom) throw std::logic_error("more results than there is room for");
  return device_.data() + begin;
}

void Results::fetch(const Stream& stream) {
  fetched_ = true;
  copy_to_host(stream, host_.data(), device_.data(), used_);
}

}  // namespace maki
