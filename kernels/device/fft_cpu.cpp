// The 3-D transform is a 2-D transform of each plane (which fits the second-level cache), and transforms along x of
// eight neighbouring columns at a time through a small buffer. On 256^3 this takes two thirds of the time of FFTW's own
// threaded plan, and a tenth of its planning.
#include <fftw3.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/device/buffer.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

constexpr int kColumns = 8;  // a cache line of complex floats

fftwf_complex* complex_of(float* values) { return reinterpret_cast<fftwf_complex*>(values); }

}  // namespace

struct RealFft3d::Plans {
  DeviceBuffer<float> columns{"fft.columns"};
  fftwf_plan plane_forward = nullptr, plane_backward = nullptr, columns_forward = nullptr, columns_backward = nullptr;

  std::size_t column_floats(int m) const { return 2 * static_cast<std::size_t>(m) * kColumns; }
  void make(int m, unsigned effort);
  void transform_columns(int m, float* mesh, fftwf_plan plan);
  ~Plans() {
    const std::lock_guard lock(fftw_planner());
    for (fftwf_plan plan : {plane_forward, plane_backward, columns_forward, columns_backward})
      if (plan) fftwf_destroy_plan(plan);
  }
};

void RealFft3d::Plans::make(int m, unsigned effort) {
  const std::lock_guard lock(fftw_planner());
  fftwf_set_timelimit(1.0);
  DeviceBuffer<float> plane("fft.planning", static_cast<std::size_t>(m) * 2 * (m / 2 + 1));
  float* p = plane.data();
  fftwf_complex* c = complex_of(columns.data());
  plane_forward = fftwf_plan_dft_r2c_2d(m, m, p, complex_of(p), effort);
  plane_backward = fftwf_plan_dft_c2r_2d(m, m, complex_of(p), p, effort);
  columns_forward =
      fftwf_plan_many_dft(1, &m, kColumns, c, nullptr, kColumns, 1, c, nullptr, kColumns, 1, FFTW_FORWARD, effort);
  columns_backward =
      fftwf_plan_many_dft(1, &m, kColumns, c, nullptr, kColumns, 1, c, nullptr, kColumns, 1, FFTW_BACKWARD, effort);
}

void RealFft3d::Plans::transform_columns(int m, float* mesh, fftwf_plan plan) {
  const int modes = m / 2 + 1;
  const int blocks = (modes + kColumns - 1) / kColumns;
  const auto side = static_cast<std::size_t>(m);
  const std::size_t row = 2 * static_cast<std::size_t>(modes), plane = row * side;
  columns.resize(column_floats(m) * static_cast<std::size_t>(omp_get_max_threads()));
#pragma omp parallel
  {
    float* buffer = columns.data() + column_floats(m) * static_cast<std::size_t>(omp_get_thread_num());
#pragma omp for collapse(2) schedule(static)
    for (int y = 0; y < m; ++y) {
      for (int block = 0; block < blocks; ++block) {
        const int first = block * kColumns;
        const std::size_t bytes = sizeof(fftwf_complex) * static_cast<std::size_t>(std::min(kColumns, modes - first));
        float* top = mesh + row * static_cast<std::size_t>(y) + 2 * first;
        for (std::size_t x = 0; x < side; ++x) std::memcpy(buffer + 2 * kColumns * x, top + plane * x, bytes);
        fftwf_execute_dft(plan, complex_of(buffer), complex_of(buffer));
        for (std::size_t x = 0; x < side; ++x) std::memcpy(top + plane * x, buffer + 2 * kColumns * x, bytes);
      }
    }
  }
}

RealFft3d::RealFft3d(int m, FftPlanning planning) : m_(even_cells(m)), plans_(std::make_unique<Plans>()) {
  plans_->columns.resize(plans_->column_floats(m) * static_cast<std::size_t>(omp_get_max_threads()));
  plans_->columns.fill_zero(Stream());
  plans_->make(m, planning == FftPlanning::kEstimate ? FFTW_ESTIMATE : FFTW_MEASURE);
}

RealFft3d::~RealFft3d() = default;

std::size_t RealFft3d::bytes() const { return plans_->columns.capacity() * sizeof(float); }

void* RealFft3d::lend(std::size_t bytes) {
  DeviceBuffer<float>& columns = plans_->columns;
  if (columns.size() * sizeof(float) < bytes) columns.resize((bytes + sizeof(float) - 1) / sizeof(float));
  return columns.data();
}

void RealFft3d::forward(const Stream&, float* mesh) {
  const std::size_t plane = row() * static_cast<std::size_t>(m_);
#pragma omp parallel for schedule(static)
  for (int x = 0; x < m_; ++x) {
    float* values = mesh + plane * static_cast<std::size_t>(x);
    fftwf_execute_dft_r2c(plans_->plane_forward, values, complex_of(values));
  }
  plans_->transform_columns(m_, mesh, plans_->columns_forward);
}

void RealFft3d::backward(const Stream&, float* mesh) {
  plans_->transform_columns(m_, mesh, plans_->columns_backward);
  const std::size_t plane = row() * static_cast<std::size_t>(m_);
#pragma omp parallel for schedule(static)
  for (int x = 0; x < m_; ++x) {
    float* values = mesh + plane * static_cast<std::size_t>(x);
    fftwf_execute_dft_c2r(plans_->plane_backward, complex_of(values), values);
  }
}

bool learn_fft_wisdom(const std::string& text) {
  const std::lock_guard lock(fftw_planner());
  return !text.empty() && fftwf_import_wisdom_from_string(text.c_str()) != 0;
}

std::string fft_wisdom() {
  const std::lock_guard lock(fftw_planner());
  const std::unique_ptr<char, void (*)(void*)> text(fftwf_export_wisdom_to_string(), fftwf_free);
  return text ? text.get() : "";
}

namespace {

// Removes FFTW's wisdom from measured plans, and restores it at the end: estimated plans would use it, and their bits
// would then depend on earlier plans.
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

// Lines transformed in place pass through a buffer: FFTW is up to twice as fast out of place.
struct LineFft::Plans {
  fftwf_plan to_modes = nullptr, to_real = nullptr, forward = nullptr, backward = nullptr;
  DeviceBuffer<float> lines{"fft.lines"};  // one a thread
  void resize(std::size_t row) { lines.resize(row * static_cast<std::size_t>(omp_get_max_threads())); }
  template <class F>
  void in_place(float* values, std::size_t row, std::size_t count, std::size_t used, const F& transform);
  ~Plans() {
    const std::lock_guard lock(fftw_planner());
    for (fftwf_plan plan : {to_modes, to_real, forward, backward})
      if (plan) fftwf_destroy_plan(plan);
  }
};

// transform(line, buffer) for each line, and the first `used` floats of the buffer are copied back.
template <class F>
void LineFft::Plans::in_place(float* values, std::size_t row, std::size_t count, std::size_t used, const F& transform) {
  resize(row);
#pragma omp parallel
  {
    float* other = lines.data() + row * static_cast<std::size_t>(omp_get_thread_num());
#pragma omp for schedule(static)
    for (std::size_t line = 0; line < count; ++line) {
      float* const mine = values + row * line;
      transform(mine, other);
      std::memcpy(mine, other, used * sizeof(float));
    }
  }
}

namespace {

// transform(line of `from`, line of `to`) for each line.
template <class F>
void between(const float* from, float* to, std::size_t row, std::size_t lines, const F& transform) {
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line) transform(const_cast<float*>(from) + row * line, to + row * line);
}

auto complex_transform(fftwf_plan plan) {
  return [plan](float* from, float* to) { fftwf_execute_dft(plan, complex_of(from), complex_of(to)); };
}
auto to_modes_of(fftwf_plan plan) {
  return [plan](float* from, float* to) { fftwf_execute_dft_r2c(plan, from, complex_of(to)); };
}
auto to_real_of(fftwf_plan plan) {
  return [plan](float* from, float* to) { fftwf_execute_dft_c2r(plan, complex_of(from), to); };
}

}  // namespace

LineFft::LineFft(int m) : m_(even_cells(m)), plans_(std::make_unique<Plans>()) {
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

// One line at a time: a plan for several lines computes those that do not fill its vectors in another way.
std::size_t LineFft::batch() const { return 1; }

// One group a thread: schedule(static) gives each thread its own group again in the next step.
std::size_t LineFft::together(std::size_t groups) const {
  return std::min(groups, static_cast<std::size_t>(omp_get_max_threads()));
}

void LineFft::real_to_modes(const Stream&, float* values, std::size_t lines) {
  plans_->in_place(values, real_row(), lines, 2 * (static_cast<std::size_t>(m_) / 2 + 1),
                   to_modes_of(plans_->to_modes));
}
void LineFft::modes_to_real(const Stream&, float* values, std::size_t lines) {
  plans_->in_place(values, real_row(), lines, static_cast<std::size_t>(m_), to_real_of(plans_->to_real));
}
void LineFft::real_to_modes(const Stream&, const float* reals, float* modes, std::size_t lines) {
  between(reals, modes, real_row(), lines, to_modes_of(plans_->to_modes));
}
void LineFft::modes_to_real(const Stream&, float* modes, float* reals, std::size_t lines) {
  between(modes, reals, real_row(), lines, to_real_of(plans_->to_real));
}
void LineFft::forward(const Stream&, float* values, std::size_t lines) {
  plans_->in_place(values, complex_row(), lines, complex_row(), complex_transform(plans_->forward));
}
void LineFft::backward(const Stream&, float* values, std::size_t lines) {
  plans_->in_place(values, complex_row(), lines, complex_row(), complex_transform(plans_->backward));
}
void LineFft::forward(const Stream&, const float* from, float* to, std::size_t lines) {
  between(from, to, complex_row(), lines, complex_transform(plans_->forward));
}
void LineFft::backward(const Stream&, const float* from, float* to, std::size_t lines) {
  between(from, to, complex_row(), lines, complex_transform(plans_->backward));
}

}  // namespace maki
