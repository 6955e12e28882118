#include <algorithm>
#include <cstring>

#include "kernels/device/algorithms.hpp"

namespace maki {
namespace {

constexpr std::size_t kTile = 8;                     // 8 x 8 numbers: at most eight cache lines read, eight written
constexpr std::size_t kBlock = 256;                  // numbers read along each of eight lines of the source
constexpr std::size_t kNear = std::size_t{1} << 20;  // bytes

// Both sides run along the last axis.
template <class T>
void copy_runs(const BoxCopy& box, const T* from, T* to) {
#pragma omp parallel for collapse(2) schedule(static)
  for (std::size_t i = 0; i < box.count[0]; ++i)
    for (std::size_t j = 0; j < box.count[1]; ++j)
      std::memcpy(to + box.to_step[0] * i + box.to_step[1] * j, from + box.from_step[0] * i + box.from_step[1] * j,
                  box.count[2] * sizeof(T));
}

// Lines of numbers, `step` apart.
template <class T>
struct Lines {
  T* first;
  std::size_t step;
};

// to[to_step i + k] = from[i + from_step k] for i, k in [0, kTile). Numbers of 8 bytes are moved in pairs.
template <class T>
inline void transpose_tile(const T* from, std::size_t from_step, T* to, std::size_t to_step) {
  if constexpr (sizeof(T) == 8) {
    typedef double Pair __attribute__((vector_size(16), aligned(8), may_alias));
    typedef long long Places __attribute__((vector_size(16)));
    for (std::size_t i = 0; i < kTile; i += 2) {
      for (std::size_t k = 0; k < kTile; k += 2) {
        const auto a = *reinterpret_cast<const Pair*>(from + i + from_step * k);
        const auto b = *reinterpret_cast<const Pair*>(from + i + from_step * (k + 1));
        *reinterpret_cast<Pair*>(to + to_step * i + k) = __builtin_shuffle(a, b, Places{0, 2});
        *reinterpret_cast<Pair*>(to + to_step * (i + 1) + k) = __builtin_shuffle(a, b, Places{1, 3});
      }
    }
  } else {
    for (std::size_t i = 0; i < kTile; ++i)
      for (std::size_t k = 0; k < kTile; ++k) to[to_step * i + k] = from[i + from_step * k];
  }
}

// The same for i in [first, last), k in [0, across).
template <class T>
void transpose_lines(std::size_t first, std::size_t last, std::size_t across, Lines<const T> source, Lines<T> target) {
  const auto [from, from_step] = source;
  const auto [to, to_step] = target;
  const std::size_t tiled = first + (last - first) / kTile * kTile, tiled_across = across / kTile * kTile;
  const auto tile = [&](std::size_t i, std::size_t k) {
    transpose_tile(from + i + from_step * k, from_step, to + to_step * i + k, to_step);
  };
  // A source too large for the cache is read along its lines; otherwise the target is written along its lines.
  if (across * from_step * sizeof(T) > kNear) {
    for (std::size_t k = 0; k < tiled_across; k += kTile)
      for (std::size_t i = first; i < tiled; i += kTile) tile(i, k);
  } else {
    for (std::size_t i = first; i < tiled; i += kTile)
      for (std::size_t k = 0; k < tiled_across; k += kTile) tile(i, k);
  }
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t k = i < tiled ? tiled_across : 0; k < across; ++k) to[to_step * i + k] = from[i + from_step * k];
}

// `from` is contiguous along axis `a`, `to` along the last; `o` is the third axis.
template <class T>
void transpose(const BoxCopy& box, std::size_t a, std::size_t o, const T* from, T* to) {
  const std::size_t along = box.count[a];
#pragma omp parallel for collapse(2) schedule(static)
  for (std::size_t other = 0; other < box.count[o]; ++other) {
    for (std::size_t first = 0; first < along; first += kBlock) {
      transpose_lines<T>(first, std::min(first + kBlock, along), box.count[2],
                         {from + box.from_step[o] * other, box.from_step[2]},
                         {to + box.to_step[o] * other, box.to_step[a]});
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
