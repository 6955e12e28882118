#include <cufft.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "kernels/device/buffer.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/error.hpp"

namespace maki {
namespace {

// cuFFT's return codes as DeviceError.
void check_fft(cufftResult code, const char* what) {
  if (code != CUFFT_SUCCESS)
    throw DeviceError(std::string(what) + " failed", "cuFFT error " + std::to_string(code),
                      code == CUFFT_ALLOC_FAILED ? "memory is short: use a smaller mesh"
                                                 : advice_for(cudaErrorUnknown));
}

cufftComplex* complex_of(float* values) { return reinterpret_cast<cufftComplex*>(values); }

}  // namespace

// Both directions share one work area.
struct RealFft3d::Plans {
  DeviceBuffer<char> work{"fft.work"};
  cufftHandle forward = 0, backward = 0;

  std::size_t make(cufftHandle& plan, int m, cufftType type) {
    std::size_t bytes = 0;
    check_fft(cufftCreate(&plan), "making an FFT plan");
    check_fft(cufftSetAutoAllocation(plan, 0), "making an FFT plan");
    const auto cells = static_cast<long long>(m) * m * (m + 2);  // with the padding
    long long sides[3] = {m, m, m}, reals[3] = {m, m, m + 2}, modes[3] = {m, m, m / 2 + 1};
    long long *from = reals, *to = modes;
    if (type == CUFFT_C2R) std::swap(from, to);
    check_fft(cells < 1ll << 31 ? cufftMakePlan3d(plan, m, m, m, type, &bytes)
                                : cufftMakePlanMany64(plan, 3, sides, from, 1, from[0] * from[1] * from[2], to, 1,
                                                      to[0] * to[1] * to[2], type, 1, &bytes),
              "making an FFT plan");
    return bytes;
  }
  void share(std::size_t bytes) {
    if (bytes <= work.size() && !work.empty()) return;
    work.resize(std::max<std::size_t>(bytes, 1));
    check_fft(cufftSetWorkArea(forward, work.data()), "giving an FFT its work space");
    check_fft(cufftSetWorkArea(backward, work.data()), "giving an FFT its work space");
  }
  ~Plans() {
    if (forward) cufftDestroy(forward);
    if (backward) cufftDestroy(backward);
  }
};

RealFft3d::RealFft3d(int m) : m_(even_cells(m)), plans_(std::make_unique<Plans>()) {
  const std::size_t there = plans_->make(plans_->forward, m, CUFFT_R2C);
  const std::size_t back = plans_->make(plans_->backward, m, CUFFT_C2R);
  plans_->share(std::max(there, back));
}

RealFft3d::~RealFft3d() = default;

std::size_t RealFft3d::row() const { return 2 * (static_cast<std::size_t>(m_) / 2 + 1); }
std::size_t RealFft3d::lines() const { return static_cast<std::size_t>(m_); }
double RealFft3d::floats(int m) { return static_cast<double>(m) * m * (m + 2); }
double RealFft3d::work_bytes(int) { return 0; }
BlockedFft* RealFft3d::blocks() const { return nullptr; }

void* RealFft3d::lend(std::size_t bytes) {
  plans_->share(bytes);
  return plans_->work.data();
}

void RealFft3d::forward(const Stream& stream, float* mesh) {
  check_fft(cufftSetStream(plans_->forward, native(stream)), "giving an FFT its stream");
  check_fft(cufftExecR2C(plans_->forward, mesh, reinterpret_cast<cufftComplex*>(mesh)), "forward FFT");
}

void RealFft3d::backward(const Stream& stream, float* mesh) {
  check_fft(cufftSetStream(plans_->backward, native(stream)), "giving an FFT its stream");
  check_fft(cufftExecC2R(plans_->backward, reinterpret_cast<cufftComplex*>(mesh), mesh), "backward FFT");
}

// Plans for one batch of lines, which share a work area.
struct LineFft::Plans {
  DeviceBuffer<char> work{"fft.work"};
  std::array<cufftHandle, 3> all{};  // real to modes, modes to real, complex lines both ways

  std::size_t make(cufftHandle& plan, int m, int lines, cufftType type, int from_row, int to_row) {
    std::size_t bytes = 0;
    check_fft(cufftCreate(&plan), "making an FFT plan");
    check_fft(cufftSetAutoAllocation(plan, 0), "making an FFT plan");
    check_fft(cufftMakePlanMany(plan, 1, &m, &from_row, 1, from_row, &to_row, 1, to_row, type, lines, &bytes),
              "making an FFT plan");
    return bytes;
  }
  ~Plans() {
    for (cufftHandle plan : all)
      if (plan) cufftDestroy(plan);
  }
};

LineFft::LineFft(int m) : m_(even_cells(m)), plans_(std::make_unique<Plans>()) {
  const int reals = static_cast<int>(real_row()), complexes = static_cast<int>(complex_row()) / 2,
            lines = static_cast<int>(batch());
  auto& [to_modes, to_real, both_ways] = plans_->all;
  plans_->work.resize(std::max({std::size_t{1}, plans_->make(to_modes, m, lines, CUFFT_R2C, reals, reals / 2),
                                plans_->make(to_real, m, lines, CUFFT_C2R, reals / 2, reals),
                                plans_->make(both_ways, m, lines, CUFFT_C2C, complexes, complexes)}));
  for (cufftHandle plan : plans_->all)
    check_fft(cufftSetWorkArea(plan, plans_->work.data()), "giving an FFT its work space");
}

LineFft::~LineFft() = default;

// cuFFT chooses its kernels by the batch size too, so that is constant. Two million values keep a GPU busy for longer
// than a launch takes; the lines of a small mesh's modes are fewer.
std::size_t LineFft::batch() const {
  const auto m = static_cast<std::size_t>(m_);
  return std::clamp((std::size_t{1} << 21) / m, m, m * (m / 2 + 1));
}

std::size_t LineFft::together(std::size_t groups) const { return groups; }

void LineFft::transform(const Stream& stream, LineTransform way, float* from, float* to, std::size_t lines) {
  using enum LineTransform;
  const cufftHandle plan = plans_->all[std::min<std::size_t>(static_cast<std::size_t>(way), 2)];
  const std::size_t row = way == kRealToModes || way == kModesToReal ? real_row() : complex_row();
  check_fft(cufftSetStream(plan, native(stream)), "giving an FFT its stream");
  for (std::size_t line = 0; line < lines; line += batch()) {
    float *const in = from + row * line, *const out = to + row * line;
    check_fft(way == kRealToModes   ? cufftExecR2C(plan, in, complex_of(out))
              : way == kModesToReal ? cufftExecC2R(plan, complex_of(in), out)
                                    : cufftExecC2C(plan, complex_of(in), complex_of(out),
                                                   way == kForward ? CUFFT_FORWARD : CUFFT_INVERSE),
              "FFT of lines");
  }
}

}  // namespace maki
