#include <algorithm>
#include <cstring>

#include "kernels/device/box_copy.hpp"

namespace maki {
namespace {

constexpr std::size_t kTile = 8;  // 8 x 8 numbers: at most eight cache lines read, eight written
constexpr std::size_t kBlock = 256;  // numbers of eight lines of the source read on end

// Both sides run along the last axis.
template <class T>
void copy_runs(const BoxCopy& box, const T* from, T* to) {
#pragma omp parallel for collapse(2) schedule(static)
  for (std::size_t i = 0; i < box.count[0]; ++i)
    for (std::size_t j = 0; j < box.count[1]; ++j)
      std::memcpy(to + box.to_step[0] * i + box.to_step[1] * j, from + box.from_step[0] * i + box.from_step[1] * j,
                  box.count[2] * sizeof(T));
}

// `from` runs along axis `a`, `to` along the last; `o` is the third.
template <class T>
void transpose(const BoxCopy& box, std::size_t a, std::size_t o, const T* from, T* to) {
  const std::size_t along = box.count[a], across = box.count[2];
#pragma omp parallel for collapse(2) schedule(static)
  for (std::size_t other = 0; other < box.count[o]; ++other) {
    for (std::size_t first = 0; first < along; first += kBlock) {
      const std::size_t last = std::min(first + kBlock, along);
      const T* source = from + box.from_step[o] * other;
      T* target = to + box.to_step[o] * other;
      for (std::size_t k0 = 0; k0 < across; k0 += kTile) {
        const std::size_t k1 = std::min(k0 + kTile, across);
        for (std::size_t i0 = first; i0 < last; i0 += kTile) {
          const std::size_t i1 = std::min(i0 + kTile, last);
          for (std::size_t i = i0; i < i1; ++i)
            for (std::size_t k = k0; k < k1; ++k) target[box.to_step[a] * i + k] = source[i + box.from_step[2] * k];
        }
      }
    }
  }
}

}  // namespace

template <class T>
void copy_box(const Stream&, const BoxCopy& box, const T* from, T* to) {
  if (box.from_step[2] == 1)
    copy_runs(box, from, to);
  else if (box.from_step[1] == 1)
    transpose(box, 1, 0, from, to);
  else
    transpose(box, 0, 1, from, to);
}

template void copy_box(const Stream&, const BoxCopy&, const std::complex<float>*, std::complex<float>*);
template void copy_box(const Stream&, const BoxCopy&, const std::complex<double>*, std::complex<double>*);
template void copy_box(const Stream&, const BoxCopy&, const float*, float*);
template void copy_box(const Stream&, const BoxCopy&, const std::uint64_t*, std::uint64_t*);

void add_box(const Stream&, const BoxCopy& box, const std::uint64_t* from, std::uint64_t* to) {
#pragma omp parallel for collapse(2) schedule(static)
  for (std::size_t i = 0; i < box.count[0]; ++i) {
    for (std::size_t j = 0; j < box.count[1]; ++j) {
      const std::uint64_t* source = from + box.from_step[0] * i + box.from_step[1] * j;
      std::uint64_t* target = to + box.to_step[0] * i + box.to_step[1] * j;
      for (std::size_t k = 0; k < box.count[2]; ++k) target[k] += source[box.from_step[2] * k];
    }
  }
}

}  // namespace maki
