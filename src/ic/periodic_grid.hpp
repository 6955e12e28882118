// A real field on n^3 points of a periodic box, and its Fourier modes, in one array.
#pragma once

#include <complex>
#include <cstddef>
#include <vector>

namespace maki {

// Point (ix, iy, iz) lies at (ix, iy, iz) L/n. Modes are numbered by signed integers, k = 2 pi m / L, and
//   f(x) = sum_m f_m exp(i k x),   f_{-m} = conj(f_m);
// those with 0 <= mz <= n/2 are stored. Each 1-D transform is the same FFTW plan on contiguous, aligned lines, so
// the bits of a result do not depend on the number of threads, nor on how a grid is cut into lines.
class PeriodicGrid {
 public:
  using Complex = std::complex<double>;

  // All zero; n even, at least 2. Throws std::invalid_argument otherwise.
  explicit PeriodicGrid(int n);

  int n() const { return n_; }
  int half() const { return n_ / 2; }

  // n values f(ix, iy, 0..n-1).
  double* row(int ix, int iy) { return reinterpret_cast<double*>(mode_row(ix, iy)); }
  const double* row(int ix, int iy) const { return reinterpret_cast<const double*>(mode_row(ix, iy)); }

  // n/2 + 1 modes (mx, my, 0..n/2) with mx = wave_number(ix) and my = wave_number(iy).
  Complex* mode_row(int ix, int iy) { return data_.data() + row_offset(ix, iy); }
  const Complex* mode_row(int ix, int iy) const { return data_.data() + row_offset(ix, iy); }

  // Signed mode number of an index in 0..n-1, and back.
  int wave_number(int index) const { return index <= half() ? index : index - n_; }
  int index_of(int wave_number) const { return wave_number >= 0 ? wave_number : wave_number + n_; }

  void to_points();  // modes -> values, the sum above
  void to_modes();   // values -> modes, the inverse (1/n^3 included)

 private:
  std::size_t row_offset(int ix, int iy) const {
    return (static_cast<std::size_t>(ix) * n_ + iy) * (static_cast<std::size_t>(half()) + 1);
  }
  void transform_across(bool along_x, int sign);
  void transform_rows(int sign);

  int n_;
  std::vector<Complex> data_;
};

}  // namespace maki
