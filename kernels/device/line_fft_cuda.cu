#include <algorithm>

#include "kernels/device/buffer.hpp"
#include "kernels/device/cuda_check.cuh"
#include "kernels/device/cufft_check.cuh"
#include "kernels/device/error.hpp"
#include "kernels/device/line_fft.hpp"

namespace maki {
namespace {

// cuFFT's two precisions under one name.
template <class Real>
struct Cufft;
template <>
struct Cufft<float> {
  using Complex = cufftComplex;
  static constexpr cufftType to_modes = CUFFT_R2C, to_real = CUFFT_C2R, both_ways = CUFFT_C2C;
  static cufftResult run_to_modes(cufftHandle plan, float* from, float* to) {
    return cufftExecR2C(plan, from, complex_of(to));
  }
  static cufftResult run_to_real(cufftHandle plan, float* from, float* to) {
    return cufftExecC2R(plan, complex_of(from), to);
  }
  static cufftResult run(cufftHandle plan, float* from, float* to, int way) {
    return cufftExecC2C(plan, complex_of(from), complex_of(to), way);
  }
  static Complex* complex_of(float* v) { return reinterpret_cast<Complex*>(v); }
};
template <>
struct Cufft<double> {
  using Complex = cufftDoubleComplex;
  static constexpr cufftType to_modes = CUFFT_D2Z, to_real = CUFFT_Z2D, both_ways = CUFFT_Z2Z;
  static cufftResult run_to_modes(cufftHandle plan, double* from, double* to) {
    return cufftExecD2Z(plan, from, complex_of(to));
  }
  static cufftResult run_to_real(cufftHandle plan, double* from, double* to) {
    return cufftExecZ2D(plan, complex_of(from), to);
  }
  static cufftResult run(cufftHandle plan, double* from, double* to, int way) {
    return cufftExecZ2Z(plan, complex_of(from), complex_of(to), way);
  }
  static Complex* complex_of(double* v) { return reinterpret_cast<Complex*>(v); }
};

// run(line) transforms a batch that begins there.
template <class F>
void in_batches(const Stream& stream, cufftHandle plan, std::size_t lines, std::size_t batch, const char* what,
                const F& run) {
  check_fft(cufftSetStream(plan, native(stream)), "giving an FFT its stream");
  for (std::size_t line = 0; line < lines; line += batch) check_fft(run(line), what);
}

}  // namespace

// Plans for one batch of lines, which share a work area.
template <class Real>
struct LineFft<Real>::Plans {
  DeviceBuffer<char> work{"fft.work"};
  cufftHandle to_modes = 0, to_real = 0, both_ways = 0;

  std::size_t make(cufftHandle& plan, int m, int lines, cufftType type, int from_row, int to_row) {
    std::size_t bytes = 0;
    check_fft(cufftCreate(&plan), "making an FFT plan");
    check_fft(cufftSetAutoAllocation(plan, 0), "making an FFT plan");
    check_fft(cufftMakePlanMany(plan, 1, &m, &from_row, 1, from_row, &to_row, 1, to_row, type, lines, &bytes),
              "making an FFT plan");
    return bytes;
  }
  ~Plans() {
    const cufftHandle plans[] = {to_modes, to_real, both_ways};
    for (cufftHandle plan : plans)
      if (plan) cufftDestroy(plan);
  }
};

template <class Real>
LineFft<Real>::LineFft(int m) : m_(m), plans_(std::make_unique<Plans>()) {
  if (m < 2 || m % 2)
    throw Error("a mesh of " + std::to_string(m) + " cells a side", "it has to be even", "choose an even number");
  using Api = Cufft<Real>;
  const int reals = static_cast<int>(real_row()), complexes = static_cast<int>(complex_row()) / 2,
            lines = static_cast<int>(batch());
  std::size_t bytes = 1;
  bytes = std::max(bytes, plans_->make(plans_->to_modes, m, lines, Api::to_modes, reals, reals / 2));
  bytes = std::max(bytes, plans_->make(plans_->to_real, m, lines, Api::to_real, reals / 2, reals));
  bytes = std::max(bytes, plans_->make(plans_->both_ways, m, lines, Api::both_ways, complexes, complexes));
  plans_->work.resize(bytes);
  const cufftHandle plans[] = {plans_->to_modes, plans_->to_real, plans_->both_ways};
  for (cufftHandle plan : plans) check_fft(cufftSetWorkArea(plan, plans_->work.data()), "giving an FFT its work space");
}

template <class Real>
LineFft<Real>::~LineFft() = default;

// cuFFT chooses its kernels by the batch, too: so that is always the same. Two million values keep a GPU busy for longer than
// a launch takes; the lines of a small mesh's modes are fewer.
template <class Real>
std::size_t LineFft<Real>::batch() const {
  const auto m = static_cast<std::size_t>(m_);
  return std::clamp((std::size_t{1} << 21) / m, m, m * (m / 2 + 1));
}

template <class Real>
std::size_t LineFft<Real>::together(std::size_t groups) const {
  return groups;
}

template <class Real>
void LineFft<Real>::real_to_modes(const Stream& stream, Real* values, std::size_t lines) {
  real_to_modes(stream, values, values, lines);
}

template <class Real>
void LineFft<Real>::modes_to_real(const Stream& stream, Real* values, std::size_t lines) {
  modes_to_real(stream, values, values, lines);
}

template <class Real>
void LineFft<Real>::real_to_modes(const Stream& stream, const Real* reals, Real* modes, std::size_t lines) {
  in_batches(stream, plans_->to_modes, lines, batch(), "FFT of real lines", [&](std::size_t line) {
    return Cufft<Real>::run_to_modes(plans_->to_modes, const_cast<Real*>(reals) + real_row() * line,
                                     modes + real_row() * line);
  });
}

template <class Real>
void LineFft<Real>::modes_to_real(const Stream& stream, Real* modes, Real* reals, std::size_t lines) {
  in_batches(stream, plans_->to_real, lines, batch(), "FFT to real lines", [&](std::size_t line) {
    return Cufft<Real>::run_to_real(plans_->to_real, modes + real_row() * line, reals + real_row() * line);
  });
}

template <class Real>
void LineFft<Real>::forward(const Stream& stream, Real* values, std::size_t lines) {
  forward(stream, values, values, lines);
}

template <class Real>
void LineFft<Real>::backward(const Stream& stream, Real* values, std::size_t lines) {
  backward(stream, values, values, lines);
}

template <class Real>
void LineFft<Real>::forward(const Stream& stream, const Real* from, Real* to, std::size_t lines) {
  in_batches(stream, plans_->both_ways, lines, batch(), "FFT of lines", [&](std::size_t line) {
    return Cufft<Real>::run(plans_->both_ways, const_cast<Real*>(from) + complex_row() * line,
                            to + complex_row() * line, CUFFT_FORWARD);
  });
}

template <class Real>
void LineFft<Real>::backward(const Stream& stream, const Real* from, Real* to, std::size_t lines) {
  in_batches(stream, plans_->both_ways, lines, batch(), "FFT of lines", [&](std::size_t line) {
    return Cufft<Real>::run(plans_->both_ways, const_cast<Real*>(from) + complex_row() * line,
                            to + complex_row() * line, CUFFT_INVERSE);
  });
}

template class LineFft<float>;
template class LineFft<double>;

}  // namespace maki
