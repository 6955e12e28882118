#include "kernels/device/box_copy.hpp"
#include "kernels/device/launch.cuh"

namespace maki {
namespace {

// One thread a number, in the order of the target. Neighbouring lines of the source are met again in the cache.
struct CopyCell {
  std::size_t count1, count2;
  std::size_t from0, from1, from2, to0, to1;
  const float2* from;
  float2* to;
  MAKI_HD void operator()(std::size_t cell) const {
    const std::size_t k = cell % count2, line = cell / count2;
    const std::size_t j = line % count1, i = line / count1;
    to[to0 * i + to1 * j + k] = from[from0 * i + from1 * j + from2 * k];
  }
};

}  // namespace

void copy_box(const Stream& stream, const BoxCopy& box, const std::complex<float>* from, std::complex<float>* to) {
  const auto& [count, from_step, to_step] = box;
  const CopyCell copy{count[1],     count[2],   from_step[0],          from_step[1], from_step[2],
                      to_step[0],   to_step[1], reinterpret_cast<const float2*>(from), reinterpret_cast<float2*>(to)};
  launch(stream, "copy_box", count[0] * count[1] * count[2], copy);
}

}  // namespace maki
