// The 3-D transform is a 2-D transform of each plane (which fits the second-level cache), and transforms along x of
// eight neighbouring columns at a time through a small buffer. On 256^3 this takes two thirds of the time of FFTW's own
// threaded plan, and a tenth of its planning.
#include <fftw3.h>
#include <omp.h>

#include <algorithm>
#include <array>
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
  const std::lock_guard lock(fftw_planner());
  const WithoutWisdom naive;
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
