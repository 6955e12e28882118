// Fourier transforms of real cubic meshes, and of separate lines, in single precision (cuFFT, or FFTW under OpenMP).
//
// A mesh of m^3 reals is stored as planes [x] of rows [y] of m values and some padding. On a GPU a transformed row
// holds the m/2 + 1 complex modes kz = 0 ... m/2; on the CPU the places of the modes are BlockedFft's. Mode i along an
// axis means wave number i for i <= m/2, and i - m above.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/device/stream.hpp"
#include "kernels/error.hpp"

namespace maki {

// `m`, the cells of a mesh along a side. Throws Error unless it is even and at least 2.
inline int even_cells(int m) {
  if (m >= 2 && m % 2 == 0) return m;
  throw Error("a mesh of " + std::to_string(m) + " cells a side", "it has to be even", "choose an even number");
}

class BlockedFft;

class RealFft3d {
 public:
  explicit RealFft3d(int m);  // throws Error as even_cells()
  ~RealFft3d();

  int cells() const { return m_; }
  std::size_t row() const;    // floats from one row to the next: on a GPU 2 (m/2 + 1)
  std::size_t lines() const;  // rows from one plane to the next: on a GPU m
  std::size_t size() const { return row() * lines() * static_cast<std::size_t>(m_); }  // floats
  static double floats(int m);                                                         // size(), for estimates
  static double work_bytes(int m);  // of work space on the CPU, at most, for estimates; on a GPU 0
  BlockedFft* blocks() const;       // the transform on the CPU; null on a GPU

  // The work space, enlarged to `bytes` where it is shorter, for other uses on the same stream. The next transform
  // overwrites it; the next lend() may move it. Null on the CPU.
  void* lend(std::size_t bytes);

  // mode_k = sum_x value_x exp(-2 pi i k x / m), and value_x = sum_k mode_k exp(+2 pi i k x / m): not normalised.
  // `mesh` holds size() floats, aligned to 64 bytes. On the CPU the result does not depend on the thread count.
  void forward(const Stream& stream, float* mesh);
  void backward(const Stream& stream, float* mesh);

 private:
  struct Plans;
  int m_;
  std::unique_ptr<Plans> plans_;
};

// Real lines, and complex ones with the kernel exp(-i) or exp(+i).
enum class LineTransform { kRealToModes, kModesToReal, kForward, kBackward };

// Fourier transforms of many separate lines of m values.
//
// A line's result depends only on its own m values: the plan is the same for every line of an array, whatever its place
// and the number of lines. So a mesh divided differently transforms to the same bits.
class LineFft {
 public:
  explicit LineFft(int m);  // throws Error as even_cells()
  ~LineFft();

  int cells() const { return m_; }
  // Reals from one line to the next, padding included; each line begins at a multiple of 64 bytes.
  std::size_t real_row() const { return real_row(static_cast<std::size_t>(m_)); }        // m reals, m/2+1 modes
  std::size_t complex_row() const { return complex_row(static_cast<std::size_t>(m_)); }  // m complex values
  static std::size_t real_row(std::size_t m) { return rounded(2 * (m / 2 + 1)); }
  static std::size_t complex_row(std::size_t m) { return rounded(2 * m); }
  // Lines that an array must have room for to transform `lines` of them: plans take whole batches. Lines beyond the
  // last are undefined.
  std::size_t padded(std::size_t lines) const { return (lines + batch() - 1) / batch() * batch(); }

  // mode_k = sum_x value_x exp(-2 pi i k x / m) and back with the other sign: not normalised. Arrays are aligned to 64
  // bytes; a real line and its modes k = 0 ... m/2 have rows of one length. `from` and `to` are one array, or do not
  // overlap: the bits are the same. Modes that become reals in another array are destroyed. On the CPU several threads
  // may transform between two arrays at once.
  void transform(const Stream& stream, LineTransform way, float* from, float* to, std::size_t lines);

  // How many of `groups` groups of lines should go through a sequence of steps at a time: on the CPU one a thread, so
  // that they stay in its caches; on a GPU all.
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

// FFTW's planner is its one part that is not thread-safe: whoever plans holds this lock.
inline std::mutex& fftw_planner() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace maki
