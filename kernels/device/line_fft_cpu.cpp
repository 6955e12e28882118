#include <fftw3.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "kernels/device/buffer.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/fftw_planner.hpp"
#include "kernels/device/line_fft.hpp"

namespace maki {
namespace {

// FFTW's two libraries under one name.
template <class Real>
struct Fftw;
template <>
struct Fftw<float> {
  using Plan = fftwf_plan;
  using Complex = fftwf_complex;
  static constexpr auto plan_to_modes = fftwf_plan_dft_r2c_1d;
  static constexpr auto plan_to_real = fftwf_plan_dft_c2r_1d;
  static constexpr auto plan_complex = fftwf_plan_dft_1d;
  static constexpr auto to_modes = fftwf_execute_dft_r2c;
  static constexpr auto to_real = fftwf_execute_dft_c2r;
  static constexpr auto transform = fftwf_execute_dft;
  static constexpr auto destroy = fftwf_destroy_plan;
  static constexpr auto export_wisdom = fftwf_export_wisdom_to_string;
  static constexpr auto import_wisdom = fftwf_import_wisdom_from_string;
  static constexpr auto forget_wisdom = fftwf_forget_wisdom;
  static constexpr auto free = fftwf_free;
};
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Complex = fftw_complex;
  static constexpr auto plan_to_modes = fftw_plan_dft_r2c_1d;
  static constexpr auto plan_to_real = fftw_plan_dft_c2r_1d;
  static constexpr auto plan_complex = fftw_plan_dft_1d;
  static constexpr auto to_modes = fftw_execute_dft_r2c;
  static constexpr auto to_real = fftw_execute_dft_c2r;
  static constexpr auto transform = fftw_execute_dft;
  static constexpr auto destroy = fftw_destroy_plan;
  static constexpr auto export_wisdom = fftw_export_wisdom_to_string;
  static constexpr auto import_wisdom = fftw_import_wisdom_from_string;
  static constexpr auto forget_wisdom = fftw_forget_wisdom;
  static constexpr auto free = fftw_free;
};

template <class Real>
typename Fftw<Real>::Complex* complex_of(Real* values) {
  return reinterpret_cast<typename Fftw<Real>::Complex*>(values);
}

// Takes away what measured plans have taught FFTW and gives it back at the end: estimated plans would follow it, and
// then the bits depended on what was planned before.
template <class Real>
class WithoutWisdom {
 public:
  WithoutWisdom() : kept_(Fftw<Real>::export_wisdom()) { Fftw<Real>::forget_wisdom(); }
  ~WithoutWisdom() {
    if (!kept_) return;
    Fftw<Real>::forget_wisdom();
    Fftw<Real>::import_wisdom(kept_);
    Fftw<Real>::free(kept_);
  }
  WithoutWisdom(const WithoutWisdom&) = delete;
  WithoutWisdom& operator=(const WithoutWisdom&) = delete;

 private:
  char* kept_;
};

}  // namespace

// Real lines pass through a buffer as in PeriodicGrid (src/ic), for the same bits. Complex lines of doubles do not, for
// the same reason; complex lines of floats do: FFTW is up to twice as fast between two lines.
template <class Real>
struct LineFft<Real>::Plans {
  using Api = Fftw<Real>;
  using Plan = typename Api::Plan;
  static constexpr bool kApart = std::is_same_v<Real, float>;
  Plan to_modes = nullptr, to_real = nullptr, forward = nullptr, backward = nullptr;
  DeviceBuffer<Real> lines{"fft.lines"};  // one a thread
  void resize(std::size_t row) { lines.resize(row * static_cast<std::size_t>(omp_get_max_threads())); }
  void in_place(Plan plan, Real* values, std::size_t row, std::size_t count);
  static void between(Plan plan, const Real* from, Real* to, std::size_t row, std::size_t lines);
  ~Plans() {
    const std::lock_guard lock(fftw_planner());
    for (typename Api::Plan plan : {to_modes, to_real, forward, backward})
      if (plan) Api::destroy(plan);
  }
};

template <class Real>
void LineFft<Real>::Plans::in_place(Plan plan, Real* values, std::size_t row, std::size_t count) {
  resize(row);
#pragma omp parallel
  {
    Real* other = lines.data() + row * static_cast<std::size_t>(omp_get_thread_num());
#pragma omp for schedule(static)
    for (std::size_t line = 0; line < count; ++line) {
      Real* const mine = values + row * line;
      Api::transform(plan, complex_of(mine), complex_of(kApart ? other : mine));
      if (kApart) std::memcpy(mine, other, row * sizeof(Real));
    }
  }
}

template <class Real>
void LineFft<Real>::Plans::between(Plan plan, const Real* from, Real* to, std::size_t row, std::size_t lines) {
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line) {
    Real *const source = const_cast<Real*>(from) + row * line, *const target = to + row * line;
    if (!kApart) std::memcpy(target, source, row * sizeof(Real));
    Api::transform(plan, complex_of(kApart ? source : target), complex_of(target));
  }
}

template <class Real>
LineFft<Real>::LineFft(int m) : m_(m), plans_(std::make_unique<Plans>()) {
  if (m < 2 || m % 2)
    throw Error("a mesh of " + std::to_string(m) + " cells a side", "it has to be even", "choose an even number");
  using Api = Fftw<Real>;
  plans_->resize(complex_row());
  DeviceBuffer<Real> line("fft.planning", complex_row());
  Real* other = plans_->lines.data();
  auto* c = complex_of(line.data());
  const std::lock_guard lock(fftw_planner());
  const WithoutWisdom<Real> naive;
  plans_->to_modes = Api::plan_to_modes(m, line.data(), complex_of(other), FFTW_ESTIMATE);
  plans_->to_real = Api::plan_to_real(m, c, other, FFTW_ESTIMATE);
  auto* const target = Plans::kApart ? complex_of(other) : c;
  plans_->forward = Api::plan_complex(m, c, target, FFTW_FORWARD, FFTW_ESTIMATE);
  plans_->backward = Api::plan_complex(m, c, target, FFTW_BACKWARD, FFTW_ESTIMATE);
}

template <class Real>
LineFft<Real>::~LineFft() = default;

// One line at a time: a plan for several treats those that do not fill its vectors in another way.
template <class Real>
std::size_t LineFft<Real>::batch() const {
  return 1;
}

// One group a thread: schedule(static) gives each thread its own group again in the next step.
template <class Real>
std::size_t LineFft<Real>::together(std::size_t groups) const {
  return std::min(groups, static_cast<std::size_t>(omp_get_max_threads()));
}

template <class Real>
void LineFft<Real>::real_to_modes(const Stream&, Real* values, std::size_t lines) {
  const std::size_t row = real_row(), used = 2 * (static_cast<std::size_t>(m_) / 2 + 1);
  plans_->resize(row);
#pragma omp parallel
  {
    Real* modes = plans_->lines.data() + row * static_cast<std::size_t>(omp_get_thread_num());
#pragma omp for schedule(static)
    for (std::size_t line = 0; line < lines; ++line) {
      Fftw<Real>::to_modes(plans_->to_modes, values + row * line, complex_of(modes));
      std::memcpy(values + row * line, modes, used * sizeof(Real));
    }
  }
}

template <class Real>
void LineFft<Real>::modes_to_real(const Stream&, Real* values, std::size_t lines) {
  const std::size_t row = real_row();
  plans_->resize(row);
#pragma omp parallel
  {
    Real* reals = plans_->lines.data() + row * static_cast<std::size_t>(omp_get_thread_num());
#pragma omp for schedule(static)
    for (std::size_t line = 0; line < lines; ++line) {
      Fftw<Real>::to_real(plans_->to_real, complex_of(values + row * line), reals);
      std::memcpy(values + row * line, reals, static_cast<std::size_t>(m_) * sizeof(Real));
    }
  }
}

template <class Real>
void LineFft<Real>::real_to_modes(const Stream&, const Real* reals, Real* modes, std::size_t lines) {
  const std::size_t row = real_row();
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line)
    Fftw<Real>::to_modes(plans_->to_modes, const_cast<Real*>(reals) + row * line, complex_of(modes + row * line));
}

template <class Real>
void LineFft<Real>::modes_to_real(const Stream&, Real* modes, Real* reals, std::size_t lines) {
  const std::size_t row = real_row();
#pragma omp parallel for schedule(static)
  for (std::size_t line = 0; line < lines; ++line)
    Fftw<Real>::to_real(plans_->to_real, complex_of(modes + row * line), reals + row * line);
}

template <class Real>
void LineFft<Real>::forward(const Stream&, Real* values, std::size_t lines) {
  plans_->in_place(plans_->forward, values, complex_row(), lines);
}
template <class Real>
void LineFft<Real>::backward(const Stream&, Real* values, std::size_t lines) {
  plans_->in_place(plans_->backward, values, complex_row(), lines);
}
template <class Real>
void LineFft<Real>::forward(const Stream&, const Real* from, Real* to, std::size_t lines) {
  Plans::between(plans_->forward, from, to, complex_row(), lines);
}
template <class Real>
void LineFft<Real>::backward(const Stream&, const Real* from, Real* to, std::size_t lines) {
  Plans::between(plans_->backward, from, to, complex_row(), lines);
}

template class LineFft<float>;
template class LineFft<double>;

}  // namespace maki
