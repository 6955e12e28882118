#include <fftw3.h>

#include <string>

#include "kernels/device/buffer.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/fftw_planner.hpp"
#include "kernels/device/line_fft.hpp"

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

struct LineFft::Plans {
  fftwf_plan to_modes = nullptr, to_real = nullptr, forward = nullptr, backward = nullptr;
  ~Plans() {
    const std::lock_guard lock(fftw_planner());
    for (fftwf_plan plan : {to_modes, to_real, forward, backward})
      if (plan) fftwf_destroy_plan(plan);
  }
};

LineFft::LineFft(int m) : m_(m), plans_(std::make_unique<Plans>()) {
  if (m < 2 || m % 2)
    throw Error("a mesh of " + std::to_string(m) + " cells a side", "it has to be even", "choose an even number");
  DeviceBuffer<float> line("fft.planning", complex_row());
  float* values = line.data();
  fftwf_complex* c = complex_of(values);
  const std::lock_guard lock(fftw_planner());
  const WithoutWisdom naive;
  plans_->to_modes = fftwf_plan_dft_r2c_1d(m, values, c, FFTW_ESTIMATE);
  plans_->to_real = fftwf_plan_dft_c2r_1d(m, c, values, FFTW_ESTIMATE);
  plans_->forward = fftwf_plan_dft_1d(m, c, c, FFTW_FORWARD, FFTW_ESTIMATE);
  plans_->backward = fftwf_plan_dft_1d(m, c, c, FFTW_BACKWARD, FFTW_ESTIMATE);
}

LineFft::~LineFft() = default;

// One line at a time: a plan for several treats those that do not fill its vectors in another way.
std::size_t LineFft::batch() const { return 1; }

void LineFft::real_to_modes(const Stream&, float* values, std::size_t lines) {
  const std::size_t row = real_row();
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line)
    fftwf_execute_dft_r2c(plans_->to_modes, values + row * line, complex_of(values + row * line));
}

void LineFft::modes_to_real(const Stream&, float* values, std::size_t lines) {
  const std::size_t row = real_row();
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line)
    fftwf_execute_dft_c2r(plans_->to_real, complex_of(values + row * line), values + row * line);
}

void LineFft::forward(const Stream&, float* values, std::size_t lines) {
  const std::size_t row = complex_row();
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line)
    fftwf_execute_dft(plans_->forward, complex_of(values + row * line), complex_of(values + row * line));
}

void LineFft::backward(const Stream&, float* values, std::size_t lines) {
  const std::size_t row = complex_row();
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line)
    fftwf_execute_dft(plans_->backward, complex_of(values + row * line), complex_of(values + row * line));
}

}  // namespace maki
