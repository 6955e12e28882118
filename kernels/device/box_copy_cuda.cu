#include "kernels/device/box_copy.hpp"
#include "kernels/device/launch.cuh"

namespace maki {
namespace {

// One thread a cell, in the order of the target. Neighbouring lines of the source are met again in the cache.
template <class T, bool kAdd>
struct CopyCell {
  const T* from;
  T* to;
  std::size_t count1, count2, from0, from1, from2, to0, to1;
  MAKI_HD void operator()(std::size_t cell) const {
    const std::size_t k = cell % count2, line = cell / count2;
    const std::size_t j = line % count1, i = line / count1;
    const T value = from[from0 * i + from1 * j + from2 * k];
    T& place = to[to0 * i + to1 * j + k];
    if constexpr (kAdd)
      place += value;
    else
      place = value;
  }
};

template <bool kAdd, class T>
void launch_box(const Stream& stream, const char* name, const BoxCopy& box, const T* from, T* to) {
  const auto& [count, from_step, to_step] = box;
  launch(stream, name, count[0] * count[1] * count[2],
         CopyCell<T, kAdd>{from, to, count[1], count[2], from_step[0], from_step[1], from_step[2], to_step[0],
                           to_step[1]});
}

}  // namespace

template <class T>
void copy_box(const Stream& stream, const BoxCopy& box, const T* from, T* to) {
  launch_box<false>(stream, "copy_box", box, from, to);
}
template <>
void copy_box(const Stream& stream, const BoxCopy& box, const std::complex<float>* from, std::complex<float>* to) {
  launch_box<false>(stream, "copy_box", box, reinterpret_cast<const float2*>(from), reinterpret_cast<float2*>(to));
}
template <>
void copy_box(const Stream& stream, const BoxCopy& box, const std::complex<double>* from, std::complex<double>* to) {
  launch_box<false>(stream, "copy_box", box, reinterpret_cast<const double2*>(from), reinterpret_cast<double2*>(to));
}
template void copy_box(const Stream&, const BoxCopy&, const float*, float*);
template void copy_box(const Stream&, const BoxCopy&, const std::uint64_t*, std::uint64_t*);

void add_box(const Stream& stream, const BoxCopy& box, const std::uint64_t* from, std::uint64_t* to) {
  launch_box<true>(stream, "add_box", box, from, to);
}

}  // namespace maki
