// CUB's radix sort, and copies of boxes on the GPU: where source and target are contiguous along different axes, tiles
// of both axes are transposed in shared memory, so that a warp reads and writes neighbouring elements.
#include "kernels/device/algorithms.hpp"

#include <complex>
#include <cub/device/device_radix_sort.cuh>

#include "kernels/device/launch.cuh"

namespace maki {

// The second halves of the double buffers come from the pool with the arrays' own sizes, so that the reordering of the
// particles reuses these blocks.
void sort_by_key(const Stream& stream, DeviceBuffer<std::uint64_t>& keys, DeviceBuffer<std::uint32_t>& values) {
  const std::size_t n = keys.size();
  if (n < 2) return;
  DeviceBuffer<std::uint64_t> other_keys(keys.name(), n);
  DeviceBuffer<std::uint32_t> other_values(values.name(), n);
  cub::DoubleBuffer<std::uint64_t> k(keys.data(), other_keys.data());
  cub::DoubleBuffer<std::uint32_t> v(values.data(), other_values.data());
  const auto sort = [&](void* scratch, std::size_t& bytes) {
    check_cuda(cub::DeviceRadixSort::SortPairs(scratch, bytes, k, v, static_cast<std::uint32_t>(n), 0, 64,
                                               native(stream)),
               "radix sort");
  };
  std::size_t bytes = 0;
  sort(nullptr, bytes);
  DeviceBuffer<unsigned char> scratch("sort.scratch", bytes > 0 ? bytes : 1);
  sort(scratch.data(), bytes);
  if (k.Current() != keys.data()) keys.swap(other_keys);
  if (v.Current() != values.data()) values.swap(other_values);
}

namespace {

template <bool kAdd, class T>
__device__ __forceinline__ void put(T& place, const T& value) {
  if constexpr (kAdd)
    place += value;
  else
    place = value;
}

// One thread a cell, in the order of the target.
template <class T, bool kAdd>
struct CopyCell {
  const T* from;
  T* to;
  std::size_t count1, count2, from0, from1, from2, to0, to1;
  __device__ void operator()(std::size_t cell) const {
    const std::size_t k = cell % count2, line = cell / count2;
    const std::size_t j = line % count1, i = line / count1;
    put<kAdd>(to[to0 * i + to1 * j + k], from[from0 * i + from1 * j + from2 * k]);
  }
};

constexpr unsigned kTile = kWarpSize;  // cells a side
constexpr unsigned kTileRows = 8;      // read or written at a time
constexpr std::size_t kFewest = 8;     // cells along both axes from which on tiles are used

// A box to transpose, by its axes: the source's contiguous one, the target's (last) one, and the other.
struct TurnedBox {
  std::size_t count_source, count_last;
  std::size_t from_last, from_other;  // source elements between neighbours along those axes
  std::size_t to_source, to_other;    // likewise in the target
  unsigned tiles_source, tiles_last;
};

__device__ __forceinline__ unsigned cells_here(std::size_t left) {
  return left < kTile ? static_cast<unsigned>(left) : kTile;
}

// One tile a block; a warp moves one row of the tile at a time.
template <class T, bool kAdd>
__global__ void __launch_bounds__(kTile* kTileRows) turn_kernel(TurnedBox box, const T* from, T* to) {
  __shared__ T tile[kTile][kTile + 1];  // padded: the elements of a column lie in different banks
  const unsigned lane = threadIdx.x % kTile, row = threadIdx.x / kTile;
  const unsigned line = blockIdx.x / box.tiles_source;
  const std::size_t source = std::size_t{blockIdx.x % box.tiles_source} * kTile;
  const std::size_t last = std::size_t{line % box.tiles_last} * kTile, other = line / box.tiles_last;
  const unsigned sources = cells_here(box.count_source - source), lasts = cells_here(box.count_last - last);
  const T* const read = from + box.from_other * other + box.from_last * (last + row) + source + lane;
  T* const written = to + box.to_other * other + box.to_source * (source + row) + last + lane;
#pragma unroll
  for (unsigned r = 0; r < kTile; r += kTileRows)
    if (lane < sources && row + r < lasts) tile[row + r][lane] = read[r * box.from_last];
  __syncthreads();
#pragma unroll
  for (unsigned r = 0; r < kTile; r += kTileRows)
    if (lane < lasts && row + r < sources) put<kAdd>(written[r * box.to_source], tile[lane][row + r]);
}

unsigned tiles_along(std::size_t count) { return static_cast<unsigned>((count + kTile - 1) / kTile); }

template <bool kAdd, class T>
void launch_box(const Stream& stream, const char* name, const BoxCopy& box, const T* from, T* to) {
  const auto& [count, from_step, to_step] = box;
  const std::size_t source = from_step[1] == 1 ? 1 : 0, other = 1 - source;  // the contiguous axis, if not the last
  if (from_step[2] == 1 || from_step[source] != 1 || count[source] < kFewest || count[2] < kFewest)
    return launch(stream, name, count[0] * count[1] * count[2],
                  CopyCell<T, kAdd>{from, to, count[1], count[2], from_step[0], from_step[1], from_step[2], to_step[0],
                                    to_step[1]});
  const TurnedBox turned{count[source],
                         count[2],
                         from_step[2],
                         from_step[other],
                         to_step[source],
                         to_step[other],
                         tiles_along(count[source]),
                         tiles_along(count[2])};
  const auto blocks = static_cast<unsigned>(count[other] * turned.tiles_source * turned.tiles_last);
  launch_blocks(stream, name, {blocks, kTile * kTileRows, 0}, turn_kernel<T, kAdd>, turned, from, to);
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
template void copy_box(const Stream&, const BoxCopy&, const float*, float*);
template void copy_box(const Stream&, const BoxCopy&, const std::uint64_t*, std::uint64_t*);

void add_box(const Stream& stream, const BoxCopy& box, const std::uint64_t* from, std::uint64_t* to) {
  launch_box<true>(stream, "add_box", box, from, to);
}

}  // namespace maki
