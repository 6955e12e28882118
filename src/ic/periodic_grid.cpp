#include "src/ic/periodic_grid.hpp"

#include <fftw3.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "kernels/device/fft.hpp"

namespace maki {

namespace {

using Complex = PeriodicGrid::Complex;

constexpr int kLines = 8;  // lines gathered at a time: their neighbours share cache lines

struct FftwFree {
  void operator()(void* p) const { fftw_free(p); }
};
using Buffer = std::unique_ptr<Complex[], FftwFree>;

Buffer make_buffer(std::size_t n) { return Buffer(static_cast<Complex*>(fftw_malloc(n * sizeof(Complex)))); }
fftw_complex* raw(Complex* p) { return reinterpret_cast<fftw_complex*>(p); }

struct DestroyPlan {
  void operator()(fftw_plan plan) const { fftw_destroy_plan(plan); }
};
using Plan = std::unique_ptr<std::remove_pointer_t<fftw_plan>, DestroyPlan>;

// FFTW_ESTIMATE: the choice of algorithm rests on n alone, never on timings.
enum class Kind { kComplex, kRealToModes, kModesToReal };

Plan make_plan(Kind kind, int n, int sign) {
  const std::lock_guard lock(fftw_planner());
  const Buffer in = make_buffer(n), out = make_buffer(n);
  auto* real_in = reinterpret_cast<double*>(in.get());
  auto* real_out = reinterpret_cast<double*>(out.get());
  switch (kind) {
    case Kind::kRealToModes: return Plan(fftw_plan_dft_r2c_1d(n, real_in, raw(out.get()), FFTW_ESTIMATE));
    case Kind::kModesToReal: return Plan(fftw_plan_dft_c2r_1d(n, raw(in.get()), real_out, FFTW_ESTIMATE));
    default: return Plan(fftw_plan_dft_1d(n, raw(in.get()), raw(in.get()), sign, FFTW_ESTIMATE));
  }
}

int checked(int n) {
  if (n < 2 || n % 2 != 0) throw std::invalid_argument("a periodic grid has an even number of points a side");
  return n;
}

}  // namespace

PeriodicGrid::PeriodicGrid(int n, const Communicator& ranks, Messages messages)
    : n_(checked(n)), ranks_(ranks), layout_(n, ranks.size()), messages_(messages),
      points_(layout_.box(Pencils::kReal, ranks.rank())), modes_(layout_.box(Pencils::kX, ranks.rank())) {
  const auto rows = static_cast<std::size_t>(points_.along[1].count());
  plane_ = std::max(rows * (static_cast<std::size_t>(half()) + 1), static_cast<std::size_t>(n_) * mode_count());
  data_.resize(static_cast<std::size_t>(planes()) * plane_);
}

void PeriodicGrid::clear() {
#pragma omp parallel for schedule(static)
  for (int plane = 0; plane < planes(); ++plane) {
    std::fill_n(data_.data() + static_cast<std::size_t>(plane) * plane_, plane_, Complex(0));
  }
}

ArrayBox PeriodicGrid::mode_box(const PencilRange& mx, const PencilRange& my, const PencilRange& mz) const {
  const auto counted = [](const PencilRange& range) { return static_cast<std::size_t>(range.count()); };
  if (mx.count() == 0 || my.count() == 0 || mz.count() == 0) return {};
  return {.base = mode_offset(index_of(mx.first), index_of(my.first)) +
                  static_cast<std::size_t>(mz.first - modes_.along[2].first),
          .count = {counted(my), counted(mx), counted(mz)},
          .step = {plane_, mode_count()}};
}

void PeriodicGrid::to_points() {
  transform_across(FFTW_BACKWARD);
  swap_x_and_y();
  transform_across(FFTW_BACKWARD);
  exchange_in_row(false);
  transform_rows(FFTW_BACKWARD);
}

void PeriodicGrid::to_modes() {
  transform_rows(FFTW_FORWARD);
  exchange_in_row(true);
  transform_across(FFTW_FORWARD);
  swap_x_and_y();
  transform_across(FFTW_FORWARD);
}

// Complex transforms along the middle one of [plane][x or y][mz], of kLines neighbouring lines at a time.
void PeriodicGrid::transform_across(int sign) {
  const Plan plan = make_plan(Kind::kComplex, n_, sign);
  const int modes = modes_.along[2].count();
  const std::size_t padded = (static_cast<std::size_t>(n_) + 3) / 4 * 4;  // every line is aligned as the first is
#pragma omp parallel
  {
    const Buffer lines = make_buffer(padded * kLines);
#pragma omp for collapse(2) schedule(static)
    for (int plane = 0; plane < planes(); ++plane) {
      for (int first = 0; first < modes; first += kLines) {
        Complex* const corner = data_.data() + static_cast<std::size_t>(plane) * plane_ + first;
        const int count = std::min(kLines, modes - first);
        for (int i = 0; i < n_; ++i) {
          const Complex* from = corner + static_cast<std::size_t>(i) * modes;
          for (int line = 0; line < count; ++line) lines[line * padded + i] = from[line];
        }
        for (int line = 0; line < count; ++line) {
          fftw_execute_dft(plan.get(), raw(&lines[line * padded]), raw(&lines[line * padded]));
        }
        for (int i = 0; i < n_; ++i) {
          Complex* to = corner + static_cast<std::size_t>(i) * modes;
          for (int line = 0; line < count; ++line) to[line] = lines[line * padded + i];
        }
      }
    }
  }
}

// Real transforms along z, through aligned buffers.
void PeriodicGrid::transform_rows(int sign) {
  const bool forward = sign == FFTW_FORWARD;
  const Plan plan = make_plan(forward ? Kind::kRealToModes : Kind::kModesToReal, n_, sign);
  const int modes = half() + 1;
  const double scale = 1.0 / (static_cast<double>(n_) * n_ * n_);
#pragma omp parallel
  {
    const Buffer in = make_buffer(n_), out = make_buffer(n_);
    auto* real_in = reinterpret_cast<double*>(in.get());
    auto* real_out = reinterpret_cast<double*>(out.get());
#pragma omp for collapse(2) schedule(static)
    for (int ix = points_.along[0].first; ix < points_.along[0].end; ++ix) {
      for (int iy = points_.along[1].first; iy < points_.along[1].end; ++iy) {
        Complex* line = data_.data() + point_row(ix, iy);
        double* values = row(ix, iy);
        if (forward) {
          std::copy_n(values, n_, real_in);
          fftw_execute_dft_r2c(plan.get(), real_in, raw(out.get()));
          for (int m = 0; m < modes; ++m) line[m] = out[m] * scale;
        } else {
          std::copy_n(line, modes, in.get());
          fftw_execute_dft_c2r(plan.get(), raw(in.get()), real_out);
          std::copy_n(real_out, n_, values);
        }
      }
    }
  }
}

}  // namespace maki
