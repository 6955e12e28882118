// The 3-D transform is a 2-D transform of each plane (which fits the second-level cache), and transforms along x of
// eight neighbouring columns at a time through a small buffer. On 256^3 this took two thirds of the time of FFTW's own
// threaded plan, both with measured plans.
#include <fftw3.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>

#include "kernels/device/buffer.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

constexpr int kColumns = 8;  // a cache line of complex floats

fftwf_complex* complex_of(float* values) { return reinterpret_cast<fftwf_complex*>(values); }

// FFTW's planner, without memory of earlier plans: estimated ones are then the same in every run, and so are their bits.
struct Planner {
  std::lock_guard<std::mutex> lock{fftw_planner()};
  Planner() { fftwf_forget_wisdom(); }
};

}  // namespace

struct RealFft3d::Plans {
  DeviceBuffer<float> buffers{"fft.columns"};  // one a thread: FFTW's estimated plans are faster out of place
  fftwf_plan plane_forward = nullptr, plane_backward = nullptr, columns_forward = nullptr, columns_backward = nullptr;

  static std::size_t plane_floats(int m) {
    return static_cast<std::size_t>(m) * 2 * (static_cast<std::size_t>(m) / 2 + 1);
  }
  static std::size_t column_floats(int m) { return 2 * static_cast<std::size_t>(m) * kColumns; }
  // Of a plane, or of columns before and after their transform.
  static std::size_t buffer_floats(int m) { return std::max(plane_floats(m), 2 * column_floats(m)); }
  void make_room(int m) { buffers.resize(buffer_floats(m) * static_cast<std::size_t>(omp_get_max_threads())); }
  float* buffer(int m) { return buffers.data() + buffer_floats(m) * static_cast<std::size_t>(omp_get_thread_num()); }
  void make(int m);
  void transform_columns(int m, float* mesh, fftwf_plan plan);
  ~Plans() {
    const std::lock_guard lock(fftw_planner());
    for (fftwf_plan plan : {plane_forward, plane_backward, columns_forward, columns_backward})
      if (plan) fftwf_destroy_plan(plan);
  }
};

void RealFft3d::Plans::make(int m) {
  DeviceBuffer<float> plane("fft.planning", plane_floats(m));
  float *const p = plane.data(), *const b = buffer(m);
  fftwf_complex *const from = complex_of(b), *const to = complex_of(b + column_floats(m));
  const Planner planner;
  const int sides[] = {m, m}, reals[] = {m, 2 * (m / 2 + 1)}, modes[] = {m, m / 2 + 1};
  plane_forward = fftwf_plan_many_dft_r2c(2, sides, 1, p, reals, 1, 0, complex_of(b), modes, 1, 0, FFTW_ESTIMATE);
  plane_backward = fftwf_plan_many_dft_c2r(2, sides, 1, complex_of(b), modes, 1, 0, p, reals, 1, 0, FFTW_ESTIMATE);
  const auto columns = [&](int sign) {
    return fftwf_plan_many_dft(1, &m, kColumns, from, nullptr, kColumns, 1, to, nullptr, kColumns, 1, sign,
                               FFTW_ESTIMATE);
  };
  columns_forward = columns(FFTW_FORWARD);
  columns_backward = columns(FFTW_BACKWARD);
}

void RealFft3d::Plans::transform_columns(int m, float* mesh, fftwf_plan plan) {
  const int modes = m / 2 + 1;
  const int blocks = (modes + kColumns - 1) / kColumns;
  const auto side = static_cast<std::size_t>(m);
  const std::size_t row = 2 * static_cast<std::size_t>(modes), plane = plane_floats(m);
#pragma omp parallel
  {
    float *const from = buffer(m), *const to = from + column_floats(m);
#pragma omp for collapse(2) schedule(static)
    for (int y = 0; y < m; ++y) {
      for (int block = 0; block < blocks; ++block) {
        const int first = block * kColumns;
        const std::size_t bytes = sizeof(fftwf_complex) * static_cast<std::size_t>(std::min(kColumns, modes - first));
        float* top = mesh + row * static_cast<std::size_t>(y) + 2 * first;
        for (std::size_t x = 0; x < side; ++x) std::memcpy(from + 2 * kColumns * x, top + plane * x, bytes);
        fftwf_execute_dft(plan, complex_of(from), complex_of(to));
        for (std::size_t x = 0; x < side; ++x) std::memcpy(top + plane * x, to + 2 * kColumns * x, bytes);
      }
    }
  }
}

RealFft3d::RealFft3d(int m) : m_(even_cells(m)), plans_(std::make_unique<Plans>()) {
  plans_->make_room(m);
  plans_->buffers.fill_zero(Stream());
  plans_->make(m);
}

RealFft3d::~RealFft3d() = default;

std::size_t RealFft3d::bytes() const { return plans_->buffers.capacity() * sizeof(float); }

void* RealFft3d::lend(std::size_t bytes) {
  DeviceBuffer<float>& buffers = plans_->buffers;
  if (buffers.size() * sizeof(float) < bytes) buffers.resize((bytes + sizeof(float) - 1) / sizeof(float));
  return buffers.data();
}

void RealFft3d::forward(const Stream&, float* mesh) {
  const std::size_t plane = Plans::plane_floats(m_);
  plans_->make_room(m_);
#pragma omp parallel for schedule(static)
  for (int x = 0; x < m_; ++x) {
    float *const values = mesh + plane * static_cast<std::size_t>(x), *const buffer = plans_->buffer(m_);
    fftwf_execute_dft_r2c(plans_->plane_forward, values, complex_of(buffer));
    std::memcpy(values, buffer, plane * sizeof(float));
  }
  plans_->transform_columns(m_, mesh, plans_->columns_forward);
}

void RealFft3d::backward(const Stream&, float* mesh) {
  const std::size_t plane = Plans::plane_floats(m_);
  plans_->make_room(m_);
  plans_->transform_columns(m_, mesh, plans_->columns_backward);
#pragma omp parallel for schedule(static)
  for (int x = 0; x < m_; ++x) {
    float *const values = mesh + plane * static_cast<std::size_t>(x), *const buffer = plans_->buffer(m_);
    std::memcpy(buffer, values, plane * sizeof(float));
    fftwf_execute_dft_c2r(plans_->plane_backward, complex_of(buffer), values);
  }
}

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
