#include <cufft.h>

#include <algorithm>

#include "kernels/device/buffer.hpp"
#include "kernels/device/cuda_check.cuh"
#include "kernels/device/error.hpp"
#include "kernels/device/line_fft.hpp"

namespace maki {
namespace {

void check_fft(cufftResult code, const char* what) {
  if (code != CUFFT_SUCCESS)
    throw DeviceError(std::string(what) + " failed", "cuFFT error " + std::to_string(code),
                      "use a smaller mesh if memory is short");
}

}  // namespace

// Plans for one batch of m lines, which share a work area.
struct LineFft::Plans {
  DeviceBuffer<char> work{"fft.work"};
  cufftHandle to_modes = 0, to_real = 0, both_ways = 0;

  std::size_t make(cufftHandle& plan, int m, cufftType type, int from_row, int to_row) {
    std::size_t bytes = 0;
    check_fft(cufftCreate(&plan), "making an FFT plan");
    check_fft(cufftSetAutoAllocation(plan, 0), "making an FFT plan");
    check_fft(cufftMakePlanMany(plan, 1, &m, &from_row, 1, from_row, &to_row, 1, to_row, type, m, &bytes),
              "making an FFT plan");
    return bytes;
  }
  ~Plans() {
    for (cufftHandle plan : {to_modes, to_real, both_ways})
      if (plan) cufftDestroy(plan);
  }
};

LineFft::LineFft(int m) : m_(m), plans_(std::make_unique<Plans>()) {
  if (m < 2 || m % 2)
    throw Error("a mesh of " + std::to_string(m) + " cells a side", "it has to be even", "choose an even number");
  const int reals = static_cast<int>(real_row()), complexes = static_cast<int>(complex_row()) / 2;
  std::size_t bytes = 1;
  bytes = std::max(bytes, plans_->make(plans_->to_modes, m, CUFFT_R2C, reals, reals / 2));
  bytes = std::max(bytes, plans_->make(plans_->to_real, m, CUFFT_C2R, reals / 2, reals));
  bytes = std::max(bytes, plans_->make(plans_->both_ways, m, CUFFT_C2C, complexes, complexes));
  plans_->work.resize(bytes);
  for (cufftHandle plan : {plans_->to_modes, plans_->to_real, plans_->both_ways})
    check_fft(cufftSetWorkArea(plan, plans_->work.data()), "giving an FFT its work space");
}

LineFft::~LineFft() = default;

// cuFFT chooses its kernels by the batch, too: so that is always the same.
std::size_t LineFft::batch() const { return static_cast<std::size_t>(m_); }

void LineFft::real_to_modes(const Stream& stream, float* values, std::size_t lines) {
  check_fft(cufftSetStream(plans_->to_modes, native(stream)), "giving an FFT its stream");
  for (std::size_t line = 0; line < lines; line += batch()) {
    float* first = values + real_row() * line;
    check_fft(cufftExecR2C(plans_->to_modes, first, reinterpret_cast<cufftComplex*>(first)), "FFT of real lines");
  }
}

void LineFft::modes_to_real(const Stream& stream, float* values, std::size_t lines) {
  check_fft(cufftSetStream(plans_->to_real, native(stream)), "giving an FFT its stream");
  for (std::size_t line = 0; line < lines; line += batch()) {
    float* first = values + real_row() * line;
    check_fft(cufftExecC2R(plans_->to_real, reinterpret_cast<cufftComplex*>(first), first), "FFT to real lines");
  }
}

namespace {

void transform(cufftHandle plan, cufftComplex* values, std::size_t row, std::size_t lines, std::size_t batch,
               int direction) {
  for (std::size_t line = 0; line < lines; line += batch)
    check_fft(cufftExecC2C(plan, values + row * line, values + row * line, direction), "FFT of complex lines");
}

}  // namespace

void LineFft::forward(const Stream& stream, float* values, std::size_t lines) {
  check_fft(cufftSetStream(plans_->both_ways, native(stream)), "giving an FFT its stream");
  transform(plans_->both_ways, reinterpret_cast<cufftComplex*>(values), complex_row() / 2, lines, batch(),
            CUFFT_FORWARD);
}

void LineFft::backward(const Stream& stream, float* values, std::size_t lines) {
  check_fft(cufftSetStream(plans_->both_ways, native(stream)), "giving an FFT its stream");
  transform(plans_->both_ways, reinterpret_cast<cufftComplex*>(values), complex_row() / 2, lines, batch(),
            CUFFT_INVERSE);
}

}  // namespace maki
