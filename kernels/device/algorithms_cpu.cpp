// Radix sort from the least significant digit, in which every thread counts and places a contiguous part of the
// elements; copies of boxes, in tiles where source and target are contiguous along different axes.
#include "kernels/device/algorithms.hpp"

#include <omp.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

namespace maki {
namespace {

// 256 output streams stay in L1: eight passes took 21 ms for 2^20 pairs on one core, six passes of 11 bits 37 ms.
constexpr int kDigitBits = 8, kKeyBits = 64;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

struct Pairs {
  std::uint64_t* keys;
  std::uint32_t* values;
};

// Places for a thread's elements of each digit, from the counts of all threads. False when all elements have one digit:
// nothing to do.
bool find_places(const std::uint32_t* counts, std::size_t threads, std::size_t thread, std::size_t n,
                 std::uint32_t* place) {
  std::uint32_t begin = 0;
  for (std::size_t digit = 0; digit < kDigits; ++digit) {
    std::uint32_t all = 0;
    for (std::size_t t = 0; t < threads; ++t) {
      if (t == thread) place[digit] = begin + all;
      all += counts[t * kDigits + digit];
    }
    if (all == n) return false;
    begin += all;
  }
  return true;
}

void move_pairs(Pairs from, Pairs to, std::size_t begin, std::size_t end, int shift, std::uint32_t* place) {
  for (std::size_t i = begin; i < end; ++i) {
    const std::uint64_t key = from.keys[i];
    const std::uint32_t k = place[key >> shift & (kDigits - 1)]++;
    to.keys[k] = key;
    to.values[k] = from.values[i];
  }
}

// Sorts between the two arrays; true when the result is in the second. Two barriers for each digit. Every thread adds
// up all counts itself, which is faster than waiting for one thread to do it.
bool sort_digits(Pairs from, Pairs to, std::size_t n, std::size_t most_threads) {
  std::vector<std::uint32_t> counts(2 * most_threads * kDigits);  // two in turn: others may still read the last
  bool swapped = false;
#pragma omp parallel num_threads(static_cast <int>(most_threads)) firstprivate(from, to)
  {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    const auto threads = static_cast<std::size_t>(omp_get_num_threads());  // may be fewer than asked for
    const std::size_t begin = n * thread / threads, end = n * (thread + 1) / threads;
    std::uint32_t place[kDigits];
    bool odd = false, moved = false;
    for (int shift = 0; shift < kKeyBits; shift += kDigitBits, odd = !odd) {
      std::uint32_t* all = counts.data() + (odd ? most_threads * kDigits : 0);
      std::fill(place, place + kDigits, 0u);
      for (std::size_t i = begin; i < end; ++i) ++place[from.keys[i] >> shift & (kDigits - 1)];
      std::copy(place, place + kDigits, all + thread * kDigits);
#pragma omp barrier
      if (!find_places(all, threads, thread, n, place)) continue;
      move_pairs(from, to, begin, end, shift, place);
      std::swap(from, to);
      moved = !moved;
#pragma omp barrier
    }
    if (thread == 0) swapped = moved;
  }
  return swapped;
}

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

// Transposes as transpose_tile() for i in [first, last), k in [0, across).
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

void sort_by_key(const Stream&, DeviceBuffer<std::uint64_t>& keys, DeviceBuffer<std::uint32_t>& values) {
  const std::size_t n = keys.size();
  if (n < 2) return;
  DeviceBuffer<std::uint64_t> other_keys(keys.name(), n);
  DeviceBuffer<std::uint32_t> other_values(values.name(), n);
  const std::size_t threads = std::min<std::size_t>(static_cast<std::size_t>(omp_get_max_threads()), 1 + n / 16384);
  if (sort_digits({keys.data(), values.data()}, {other_keys.data(), other_values.data()}, n, threads)) {
    keys.swap(other_keys);
    values.swap(other_values);
  }
}

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
