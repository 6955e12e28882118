// Fourier transforms of real cubic meshes, in place, single precision (cuFFT, or FFTW under OpenMP).
//
// A mesh of m^3 reals stands as m x m rows of 2 (m/2 + 1) floats, last axis contiguous: m values and two floats of
// padding; transformed, the same row holds the m/2 + 1 complex modes kz = 0 ... m/2. Along x and y, mode i means
// wave number i for i <= m/2 and i - m above.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "kernels/device/stream.hpp"

namespace maki {

// How FFTW chooses its plan (cuFFT has one way). Estimated plans are at hand at once and the same in every run;
// measured ones are about 15 % faster (256^3: 27 ms against 29 ms forward, 31 ms against 40 ms backward on two Zen 4
// cores, 0.6 s to plan), but round differently from one planning to the next unless wisdom is kept.
enum class FftPlanning { kEstimate, kMeasure };

class RealFft3d {
 public:
  // m even and at least 2, else Error. Planning is capped at about a second for each of its four plans.
  explicit RealFft3d(int m, FftPlanning planning = FftPlanning::kMeasure);
  ~RealFft3d();

  int cells() const { return m_; }
  std::size_t row() const { return 2 * (static_cast<std::size_t>(m_) / 2 + 1); }  // floats, padding included
  std::size_t size() const { return row() * static_cast<std::size_t>(m_) * static_cast<std::size_t>(m_); }  // floats
  std::size_t bytes() const;  // work space

  // Lends the work space, made `bytes` long at least, to others on the same stream: what they leave in it is gone after
  // the next transform. Valid until the next lend().
  void* lend(std::size_t bytes);

  // mode_k = sum_x value_x exp(-2 pi i k x / m), and value_x = sum_k mode_k exp(+2 pi i k x / m): not normalised.
  // `mesh` holds size() floats and is aligned to 16 bytes. On the CPU the result does not depend on the thread count.
  void forward(const Stream& stream, float* mesh);
  void backward(const Stream& stream, float* mesh);

 private:
  struct Plans;
  int m_;
  std::unique_ptr<Plans> plans_;
};

// FFTW's memory of measured plans, as a text file. Loading returns false where the file is missing or not
// understood; saving throws Error where it cannot be written. With cuFFT both do nothing.
bool load_fft_wisdom(const std::string& path);
void save_fft_wisdom(const std::string& path);

}  // namespace maki
