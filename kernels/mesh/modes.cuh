// Flat work over the modes of a transformed mesh, all or a part. The axes are named x, y, z from the slowest to the one
// along the lines. A functor has
//   Row begin(int x, int y): data shared by one row, and
//   void at(const Row&, int z, std::size_t index): one item, or for the CPU also
//   void row(const Row&, std::size_t first, int length): all of a row; `first` is its first index.
// On the CPU an item of work is a row, on the GPU a single item (neighbouring threads read neighbouring addresses).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "kernels/device/launch.cuh"

namespace maki {

struct Complex {
  float re, im;
};

// Rows (x, y), y fastest.
struct RowBlock {
  int first_x, first_y, count_x, count_y;
  std::size_t plane = 0;  // numbers from one x to the next; 0: all rows stand one after another

  // The first number of row `line`, where the rows of a plane stand `stride` numbers apart.
  MAKI_HD std::size_t first(std::uint32_t line, int stride) const {
    const auto rows = static_cast<std::uint32_t>(count_y);
    if (plane == 0) return static_cast<std::size_t>(line) * static_cast<unsigned>(stride);
    return line / rows * plane + static_cast<std::size_t>(line % rows) * static_cast<unsigned>(stride);
  }
};

namespace detail {

template <class F>
struct RowsOf {
  F f;
  RowBlock rows;
  int length, stride;

  MAKI_HD auto begin(std::uint32_t line) const {
    const auto count_y = static_cast<std::uint32_t>(rows.count_y);
    return f.begin(rows.first_x + static_cast<int>(line / count_y), rows.first_y + static_cast<int>(line % count_y));
  }
  MAKI_HD void operator()(std::size_t i) const {
#if defined(__CUDACC__)
    // A 64-bit division would cost more than the item: only meshes beyond 2^32 cells need it.
    const auto per_line = static_cast<unsigned>(length);
    const auto line = i >> 32 ? static_cast<std::uint32_t>(i / per_line) : static_cast<std::uint32_t>(i) / per_line;
    const auto z = static_cast<int>(static_cast<std::uint32_t>(i) - line * per_line);
    const auto row = begin(line);
    f.at(row, z, rows.first(line, stride) + static_cast<unsigned>(z));
#else
    const auto row = begin(static_cast<std::uint32_t>(i));
    const std::size_t first = rows.first(static_cast<std::uint32_t>(i), stride);
    if constexpr (requires { f.row(row, first, length); })
      f.row(row, first, length);
    else
      for (int z = 0; z < length; ++z) f.at(row, z, first + static_cast<std::size_t>(z));
#endif
  }
};

}  // namespace detail

// Items z = 0 ... length - 1 of these rows, which stand `stride` apart in a plane.
template <class F>
void launch_rows(const Stream& stream, const char* name, const RowBlock& rows, int length, int stride, F f) {
  std::size_t items = static_cast<std::size_t>(rows.count_x) * static_cast<std::size_t>(rows.count_y);
#if defined(__CUDACC__)
  items *= static_cast<std::size_t>(length);
#endif
  launch(stream, name, items, detail::RowsOf<F>{f, rows, length, stride});
}

// Interlacing: two meshes, the second with all particles half a cell further, are combined into one spectrum in which
// images with odd n_x + n_y + n_z cancel (Hockney & Eastwood 1988, section 7-7; Sefusatti et al. 2016).
// exp(+i pi n / m) by n = 0 ... m - 1 (n above m/2 means n - m): the phase that undoes a shift by half a cell along one
// axis. Zero at m/2, where k and -k are one mode and the shift is undefined.
inline std::vector<Complex> half_cell_phases(int m) {
  std::vector<Complex> phases(static_cast<std::size_t>(m), Complex{0, 0});
  for (int n = 0; n < m; ++n) {
    if (n == m / 2) continue;
    const double angle = std::numbers::pi * (n < m / 2 ? n : n - m) / m;
    phases[static_cast<std::size_t>(n)] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
  }
  return phases;
}

MAKI_HD Complex product(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

// mesh = (mesh + phase shifted) / 2. Modes on a Nyquist plane keep the first mesh's values.
struct CombineMeshes {
  Complex* mesh;
  const Complex* shifted;
  const Complex* phases;
  int m;

  struct Row {
    Complex phase;
    bool nyquist;
  };
  MAKI_HD Row begin(int x, int y) const { return {product(phases[x], phases[y]), 2 * x == m || 2 * y == m}; }
  MAKI_HD void at(const Row& row, int z, std::size_t i) const {
    if (row.nyquist || 2 * z == m) return;
    const Complex moved = product(product(row.phase, phases[z]), shifted[i]);
    mesh[i] = {0.5f * (mesh[i].re + moved.re), 0.5f * (mesh[i].im + moved.im)};
  }
};

}  // namespace maki
