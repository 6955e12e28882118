// Flat work over the modes of a transformed mesh, or over the cells of a real one. A functor has
//   Row begin(int x, int y): what all of one row share, and
//   void at(const Row&, int z, std::size_t index): one item.
// On the CPU an item of work is a row, on the GPU a single item (neighbouring threads read neighbouring addresses).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/launch.cuh"

namespace maki {

struct Complex {
  float re, im;
};

namespace detail {

template <class F>
struct RowsOf {
  F f;
  int m, length, stride;

  MAKI_HD void operator()(std::size_t i) const {
#if defined(__CUDACC__)
    // A 64-bit division would cost more than the item: only meshes beyond 2^32 cells take it.
    const auto per_line = static_cast<unsigned>(length);
    const auto line = i >> 32 ? static_cast<std::uint32_t>(i / per_line) : static_cast<std::uint32_t>(i) / per_line;
    const auto z = static_cast<int>(static_cast<std::uint32_t>(i) - line * per_line);
    const auto row = f.begin(static_cast<int>(line) / m, static_cast<int>(line) % m);
    f.at(row, z, static_cast<std::size_t>(line) * static_cast<unsigned>(stride) + static_cast<unsigned>(z));
#else
    const auto row = f.begin(static_cast<int>(i) / m, static_cast<int>(i) % m);
    for (int z = 0; z < length; ++z) f.at(row, z, i * static_cast<std::size_t>(stride) + static_cast<std::size_t>(z));
#endif
  }
};

template <class F>
void launch_rows(const Stream& stream, const char* name, int m, int length, int stride, F f) {
  std::size_t items = static_cast<std::size_t>(m) * static_cast<std::size_t>(m);
#if defined(__CUDACC__)
  items *= static_cast<std::size_t>(length);
#endif
  launch(stream, name, items, RowsOf<F>{f, m, length, stride});
}

}  // namespace detail

// Modes z = 0 ... m/2; index counts complex numbers.
template <class F>
void launch_modes(const Stream& stream, const char* name, int m, F f) {
  detail::launch_rows(stream, name, m, m / 2 + 1, m / 2 + 1, f);
}

// Cells z = 0 ... m - 1; index counts floats of the padded mesh.
template <class F>
void launch_cells(const Stream& stream, const char* name, int m, F f) {
  detail::launch_rows(stream, name, m, m, m + 2, f);
}

// The same with the padding, z = m and m + 1.
template <class F>
void launch_padded_cells(const Stream& stream, const char* name, int m, F f) {
  detail::launch_rows(stream, name, m, m + 2, m + 2, f);
}

}  // namespace maki
