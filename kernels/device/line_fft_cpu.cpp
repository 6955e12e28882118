#include <fftw3.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/device/buffer.hpp"
#include "kernels/device/fftw_planner.hpp"
#include "kernels/device/line_fft.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

fftwf_complex* complex_of(float* values) { return reinterpret_cast<fftwf_complex*>(values); }

// Takes away what measured plans have taught FFTW and gives it back at the end: estimated plans would follow it, and
// then the bits depended on what was planned before.
class WithoutWisdom {
 public:
  WithoutWisdom() : kept_(fftwf_export_wisdom_to_string()) { fftwf_forget_wisdom(); }
  ~WithoutWisdom() {
    if (!kept_) return;
    fftwf_forget_wisdom();
    fftwf_import_wisdom_from_string(kept_);
    fftwf_free(kept_);
  }
  WithoutWisdom(const WithoutWisdom&) = delete;
  WithoutWisdom& operator=(const WithoutWisdom&) = delete;

 private:
  char* kept_;
};

}  // namespace

// Lines that are transformed in place pass through a buffer: FFTW is up to twice as fast between two lines.
struct LineFft::Plans {
  fftwf_plan to_modes = nullptr, to_real = nullptr, forward = nullptr, backward = nullptr;
  DeviceBuffer<float> lines{"fft.lines"};  // one a thread
  void resize(std::size_t row) { lines.resize(row * static_cast<std::size_t>(omp_get_max_threads())); }
  void in_place(fftwf_plan plan, float* values, std::size_t row, std::size_t count);
  static void between(fftwf_plan plan, const float* from, float* to, std::size_t row, std::size_t lines);
  ~Plans() {
    const std::lock_guard lock(fftw_planner());
    for (fftwf_plan plan : {to_modes, to_real, forward, backward})
      if (plan) fftwf_destroy_plan(plan);
  }
};

void LineFft::Plans::in_place(fftwf_plan plan, float* values, std::size_t row, std::size_t count) {
  resize(row);
#pragma omp parallel
  {
    float* other = lines.data() + row * static_cast<std::size_t>(omp_get_thread_num());
#pragma omp for schedule(static)
    for (std::size_t line = 0; line < count; ++line) {
      float* const mine = values + row * line;
      fftwf_execute_dft(plan, complex_of(mine), complex_of(other));
      std::memcpy(mine, other, row * sizeof(float));
    }
  }
}

void LineFft::Plans::between(fftwf_plan plan, const float* from, float* to, std::size_t row, std::size_t lines) {
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line)
    fftwf_execute_dft(plan, complex_of(const_cast<float*>(from) + row * line), complex_of(to + row * line));
}

LineFft::LineFft(int m) : m_(m), plans_(std::make_unique<Plans>()) {
  if (m < 2 || m % 2)
    throw Error("a mesh of " + std::to_string(m) + " cells a side", "it has to be even", "choose an even number");
  plans_->resize(complex_row());
  DeviceBuffer<float> line("fft.planning", complex_row());
  float* other = plans_->lines.data();
  auto* c = complex_of(line.data());
  const std::lock_guard lock(fftw_planner());
  const WithoutWisdom naive;
  plans_->to_modes = fftwf_plan_dft_r2c_1d(m, line.data(), complex_of(other), FFTW_ESTIMATE);
  plans_->to_real = fftwf_plan_dft_c2r_1d(m, c, other, FFTW_ESTIMATE);
  plans_->forward = fftwf_plan_dft_1d(m, c, complex_of(other), FFTW_FORWARD, FFTW_ESTIMATE);
  plans_->backward = fftwf_plan_dft_1d(m, c, complex_of(other), FFTW_BACKWARD, FFTW_ESTIMATE);
}

LineFft::~LineFft() = default;

// One line at a time: a plan for several treats those that do not fill its vectors in another way.
std::size_t LineFft::batch() const { return 1; }

// One group a thread: schedule(static) gives each thread its own group again in the next step.
std::size_t LineFft::together(std::size_t groups) const {
  return std::min(groups, static_cast<std::size_t>(omp_get_max_threads()));
}

void LineFft::real_to_modes(const Stream&, float* values, std::size_t lines) {
  const std::size_t row = real_row(), used = 2 * (static_cast<std::size_t>(m_) / 2 + 1);
  plans_->resize(row);
#pragma omp parallel
  {
    float* modes = plans_->lines.data() + row * static_cast<std::size_t>(omp_get_thread_num());
#pragma omp for schedule(static)
    for (std::size_t line = 0; line < lines; ++line) {
      fftwf_execute_dft_r2c(plans_->to_modes, values + row * line, complex_of(modes));
      std::memcpy(values + row * line, modes, used * sizeof(float));
    }
  }
}

void LineFft::modes_to_real(const Stream&, float* values, std::size_t lines) {
  const std::size_t row = real_row();
  plans_->resize(row);
#pragma omp parallel
  {
    float* reals = plans_->lines.data() + row * static_cast<std::size_t>(omp_get_thread_num());
#pragma omp for schedule(static)
    for (std::size_t line = 0; line < lines; ++line) {
      fftwf_execute_dft_c2r(plans_->to_real, complex_of(values + row * line), reals);
      std::memcpy(values + row * line, reals, static_cast<std::size_t>(m_) * sizeof(float));
    }
  }
}

void LineFft::real_to_modes(const Stream&, const float* reals, float* modes, std::size_t lines) {
  const std::size_t row = real_row();
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line)
    fftwf_execute_dft_r2c(plans_->to_modes, const_cast<float*>(reals) + row * line, complex_of(modes + row * line));
}

void LineFft::modes_to_real(const Stream&, float* modes, float* reals, std::size_t lines) {
  const std::size_t row = real_row();
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line)
    fftwf_execute_dft_c2r(plans_->to_real, complex_of(modes + row * line), reals + row * line);
}

void LineFft::forward(const Stream&, float* values, std::size_t lines) {
  plans_->in_place(plans_->forward, values, complex_row(), lines);
}
void LineFft::backward(const Stream&, float* values, std::size_t lines) {
  plans_->in_place(plans_->backward, values, complex_row(), lines);
}
void LineFft::forward(const Stream&, const float* from, float* to, std::size_t lines) {
  Plans::between(plans_->forward, from, to, complex_row(), lines);
}
void LineFft::backward(const Stream&, const float* from, float* to, std::size_t lines) {
  Plans::between(plans_->backward, from, to, complex_row(), lines);
}

}  // namespace maki
