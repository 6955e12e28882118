#include <fftw3.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>

#include "kernels/device/blocked_fft.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

fftwf_complex* complex_of(float* values) { return reinterpret_cast<fftwf_complex*>(values); }

// FFTW's planner, without memory of earlier plans: estimated ones are then the same in every run, and so are their bits.
struct Planner {
  std::lock_guard<std::mutex> lock{fftw_planner()};
  Planner() { fftwf_forget_wisdom(); }
};

}  // namespace

struct RealFft3d::Plans {
  BlockedFft fft;
};

RealFft3d::RealFft3d(int m) : m_(even_cells(m)), plans_(new Plans{BlockedFft(m)}) {}
RealFft3d::~RealFft3d() = default;

std::size_t RealFft3d::row() const { return plans_->fft.real_row(); }
std::size_t RealFft3d::lines() const { return plans_->fft.lines(); }
double RealFft3d::floats(int m) { return BlockedFft::floats(m); }
double RealFft3d::work_bytes(int m) { return BlockedFft::work_bytes(m); }
BlockedFft* RealFft3d::blocks() const { return &plans_->fft; }
void* RealFft3d::lend(std::size_t) { return nullptr; }
void RealFft3d::forward(const Stream& stream, float* mesh) { plans_->fft.forward(stream, mesh); }
void RealFft3d::backward(const Stream& stream, float* mesh) { plans_->fft.backward(stream, mesh); }

// By LineTransform. Lines transformed in place pass through a buffer: FFTW is up to twice as fast out of place.
struct LineFft::Plans {
  std::array<fftwf_plan, 4> all{};
  DeviceBuffer<float> lines{"fft.lines"};  // one a thread
  void resize(std::size_t row) { lines.resize(row * static_cast<std::size_t>(omp_get_max_threads())); }
  ~Plans() {
    const std::lock_guard lock(fftw_planner());
    for (fftwf_plan plan : all)
      if (plan) fftwf_destroy_plan(plan);
  }
};

LineFft::LineFft(int m) : m_(even_cells(m)), plans_(std::make_unique<Plans>()) {
  plans_->resize(complex_row());
  DeviceBuffer<float> line("fft.planning", complex_row());
  float* other = plans_->lines.data();
  auto* c = complex_of(line.data());
  const Planner planner;
  auto* const other_c = complex_of(other);
  plans_->all = {fftwf_plan_dft_r2c_1d(m, line.data(), other_c, FFTW_ESTIMATE),
                 fftwf_plan_dft_c2r_1d(m, c, other, FFTW_ESTIMATE),
                 fftwf_plan_dft_1d(m, c, other_c, FFTW_FORWARD, FFTW_ESTIMATE),
                 fftwf_plan_dft_1d(m, c, other_c, FFTW_BACKWARD, FFTW_ESTIMATE)};
}

LineFft::~LineFft() = default;

// One line at a time: a plan for several lines computes those that do not fill its vectors in another way.
std::size_t LineFft::batch() const { return 1; }

// One group a thread: schedule(static) gives each thread its own group again in the next step.
std::size_t LineFft::together(std::size_t groups) const {
  return std::min(groups, static_cast<std::size_t>(omp_get_max_threads()));
}

void LineFft::transform(const Stream&, LineTransform way, float* from, float* to, std::size_t lines) {
  using enum LineTransform;
  const fftwf_plan plan = plans_->all[static_cast<std::size_t>(way)];
  const auto m = static_cast<std::size_t>(m_);
  const std::size_t row = way == kRealToModes || way == kModesToReal ? real_row() : complex_row();
  const auto one = [way, plan](float* a, float* b) {
    if (way == kRealToModes) return fftwf_execute_dft_r2c(plan, a, complex_of(b));
    if (way == kModesToReal) return fftwf_execute_dft_c2r(plan, complex_of(a), b);
    fftwf_execute_dft(plan, complex_of(a), complex_of(b));
  };
  if (from != to) {
#pragma omp parallel for schedule(static)
    for (std::size_t line = 0; line < lines; ++line) one(from + row * line, to + row * line);
    return;
  }
  const std::size_t used = way == kRealToModes ? 2 * (m / 2 + 1) : way == kModesToReal ? m : row;
  plans_->resize(row);
#pragma omp parallel
  {
    float* const other = plans_->lines.data() + row * static_cast<std::size_t>(omp_get_thread_num());
#pragma omp for schedule(static)
    for (std::size_t line = 0; line < lines; ++line) {
      one(to + row * line, other);
      std::memcpy(to + row * line, other, used * sizeof(float));
    }
  }
}

}  // namespace maki
