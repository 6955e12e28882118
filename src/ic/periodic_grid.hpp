// A real field on n^3 points of a periodic box, and its Fourier modes, in one array over all ranks.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/fft/pencil_fft.hpp"

namespace maki {

// A box of a host array of complex numbers: those at base + i step[0] + j step[1] + k for all i < count[0],
// j < count[1], k < count[2], in that order in a message.
struct ArrayBox {
  std::size_t base = 0;
  std::array<std::size_t, 3> count{};
  std::array<std::size_t, 2> step{};
  std::size_t numbers() const { return count[0] * count[1] * count[2]; }
  std::size_t at(std::size_t i, std::size_t j) const { return base + i * step[0] + j * step[1]; }
  // Its numbers in a message, from `begin` on.
  ArrayBox packed(std::size_t begin) const { return {begin, count, {count[1] * count[2], count[2]}}; }
};

// Copies a box of one array to a box of as many numbers of another, in parallel.
void copy_box(const std::complex<double>* from, const ArrayBox& source, std::complex<double>* to,
              const ArrayBox& target);

// Point (ix, iy, iz) lies at (ix, iy, iz) L/n. Modes are numbered by signed integers, k = 2 pi m / L, and
//   f(x) = sum_m f_m exp(i k x),   f_{-m} = conj(f_m);
// modes with 0 <= mz <= n/2 are stored. Each rank holds the points() and the modes() that PencilLayout gives it; either
// may be empty. Everything is in host memory, and each 1-D transform is the same FFTW plan on contiguous, aligned
// lines, also in a CUDA build: the bits of a result do not depend on the number of ranks or threads.
//
// Memory of a rank: its part of 8 bytes x n^2 (n + 2), and twice message_bytes() during transforms.
class PeriodicGrid {
 public:
  using Complex = std::complex<double>;

  static constexpr std::size_t kMessageBytes = std::size_t{64} << 20;

  // All zero. Throws std::invalid_argument unless n is even and at least 2. A rank sends, and receives, about
  // `message_bytes` at once, the same on all ranks.
  explicit PeriodicGrid(int n, const Communicator& ranks = Communicator::self(),
                        std::size_t message_bytes = kMessageBytes);

  int n() const { return n_; }
  int half() const { return n_ / 2; }
  const Communicator& ranks() const { return ranks_; }
  const PencilLayout& layout() const { return layout_; }
  std::size_t message_bytes() const { return message_bytes_; }

  // This rank's points, of whole lines along z, and its modes, of whole lines along x. Ranges of indices.
  const PencilBox& points() const { return points_; }
  const PencilBox& modes() const { return modes_; }

  // n values f(ix, iy, 0..n-1), ix and iy in points().
  double* row(int ix, int iy) { return reinterpret_cast<double*>(data_.data() + point_row(ix, iy)); }
  const double* row(int ix, int iy) const { return reinterpret_cast<const double*>(data_.data() + point_row(ix, iy)); }

  // Modes (mx, my, mz) with mx = wave_number(ix), my = wave_number(iy), iy and mz in modes(), from the first mz of
  // modes() on.
  Complex* mode_row(int ix, int iy) { return data_.data() + mode_offset(ix, iy); }
  const Complex* mode_row(int ix, int iy) const { return data_.data() + mode_offset(ix, iy); }

  // Modes with numbers in these ranges (on this rank, each range of one sign), as a box [my][mx][mz] of array().
  ArrayBox mode_box(const PencilRange& mx, const PencilRange& my, const PencilRange& mz) const;
  const Complex* array() const { return data_.data(); }

  // Signed mode number of an index in 0..n-1, and back.
  int wave_number(int index) const { return index <= half() ? index : index - n_; }
  int index_of(int wave_number) const { return wave_number >= 0 ? wave_number : wave_number + n_; }

  void clear();

  // Collective over the ranks.
  void to_points();  // modes -> values, the sum above
  void to_modes();   // values -> modes, the inverse (1/n^3 included)

 private:
  // The array holds plane_ complex numbers for each x of points(). From points to modes its layouts are
  //   [x][y][z], [x][y][all mz], [x][all y][mz] and [my][all x][mz], with as many my in the last as x in the others.
  std::size_t point_row(int ix, int iy) const {
    return static_cast<std::size_t>(ix - points_.along[0].first) * plane_ +
           static_cast<std::size_t>(iy - points_.along[1].first) * (static_cast<std::size_t>(half()) + 1);
  }
  std::size_t mode_offset(int ix, int iy) const {
    return static_cast<std::size_t>(iy - modes_.along[1].first) * plane_ + static_cast<std::size_t>(ix) * mode_count();
  }
  std::size_t mode_count() const { return static_cast<std::size_t>(modes_.along[2].count()); }
  int planes() const { return points_.along[0].count(); }

  void transform_across(int sign);
  void transform_rows(int sign);
  void exchange_in_row(bool to_modes);
  void exchange_planes(int first, int count, bool to_modes);
  void swap_x_and_y();
  void swap_own_block();
  void swap_blocks(int first, int count);

  int n_;
  Communicator ranks_;
  PencilLayout layout_;
  std::size_t message_bytes_;
  PencilBox points_, modes_;
  std::size_t plane_ = 0;
  std::vector<Complex> data_;
};

// The sites i = (ix n + iy) n + iz whose particles rank `rank` of the grid's ranks holds.
Share lattice_share(const PeriodicGrid& grid, int rank);

// Called with the values at `count` sites from `first` on, all of one line along z.
using SiteVisitor = std::function<void(std::uint64_t first, int count, const double* values)>;

// Visits the values at the sites of this rank's share: each site once, in parallel and in no order. Collective.
void visit_share(const PeriodicGrid& field, const SiteVisitor& visit);

// Called with the modes (mx, my, mz) for all mz of a range.
using ModeRowVisitor = std::function<void(int mx, int my, const PencilRange& mz, const PeriodicGrid::Complex* values)>;

// Visits the modes of `source` below the Nyquist planes of both grids, on the rank that holds them in `target`: by
// rows, each mode once, rows in parallel and in no order. Both grids are over the same ranks. Collective.
void visit_common_modes(const PeriodicGrid& source, const PeriodicGrid& target, const ModeRowVisitor& visit);

}  // namespace maki
