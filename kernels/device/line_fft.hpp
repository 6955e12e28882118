// Fourier transforms of many separate lines of m values, in place (FFTW or cuFFT), in single precision.
//
// A line's result depends on nothing but its own m values: the plan is the same for every line of an array, whatever
// its place and however many lines there are. So a mesh that is cut differently transforms to the same bits.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/device/stream.hpp"

namespace maki {

class LineFft {
 public:
  explicit LineFft(int m);  // m even and at least 2, else Error
  ~LineFft();

  int cells() const { return m_; }
  // Reals from one line to the next, padding included; lines begin at multiples of 64 bytes.
  std::size_t real_row() const { return rounded(2 * (static_cast<std::size_t>(m_) / 2 + 1)); }  // m reals, m/2+1 modes
  std::size_t complex_row() const { return rounded(2 * static_cast<std::size_t>(m_)); }         // m complex values
  // Lines that an array must have room for where `lines` are to be transformed: the plan takes whole batches, and lines
  // after the last are undefined.
  std::size_t padded(std::size_t lines) const { return (lines + batch() - 1) / batch() * batch(); }

  // mode_k = sum_x value_x exp(-2 pi i k x / m) and back with the other sign: not normalised. `lines` is aligned to
  // 64 bytes. The real line and its modes k = 0 ... m/2 share one row.
  void real_to_modes(const Stream& stream, float* values, std::size_t lines);
  void modes_to_real(const Stream& stream, float* values, std::size_t lines);
  void forward(const Stream& stream, float* values, std::size_t lines);
  void backward(const Stream& stream, float* values, std::size_t lines);
  // The same bits between two arrays that do not overlap; modes that become reals are destroyed. On the CPU these may
  // be called by several threads at once.
  void real_to_modes(const Stream& stream, const float* reals, float* modes, std::size_t lines);
  void modes_to_real(const Stream& stream, float* modes, float* reals, std::size_t lines);
  void forward(const Stream& stream, const float* from, float* to, std::size_t lines);
  void backward(const Stream& stream, const float* from, float* to, std::size_t lines);

  // How many of `groups` groups of lines go together through a sequence of steps: on the CPU one a thread, so that they
  // stay in its caches, on a GPU all.
  std::size_t together(std::size_t groups) const;

 private:
  struct Plans;
  static std::size_t rounded(std::size_t reals) {
    constexpr std::size_t unit = 64 / sizeof(float);
    return (reals + unit - 1) / unit * unit;
  }
  std::size_t batch() const;
  int m_;
  std::unique_ptr<Plans> plans_;
};

}  // namespace maki
