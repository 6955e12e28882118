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
  void operator()(fftw_plan plan) const {
    const std::lock_guard lock(fftw_planner());
    fftw_destroy_plan(plan);
  }
};
using Plan = std::unique_ptr<std::remove_pointer_t<fftw_plan>, DestroyPlan>;

// FFTW_ESTIMATE: the algorithm depends only on n, never on timings.
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

std::size_t counted(const PencilRange& range) { return static_cast<std::size_t>(range.count()); }
std::size_t first_of(const PencilRange& range) { return static_cast<std::size_t>(range.first); }

int checked(int n) {
  if (n < 2 || n % 2 != 0) throw std::invalid_argument("a periodic grid has an even number of points a side");
  return n;
}

}  // namespace

PeriodicGrid::PeriodicGrid(int n, const Communicator& ranks, std::size_t message_bytes)
    : n_(checked(n)), ranks_(ranks), layout_(n, ranks.size()), message_bytes_(message_bytes),
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

// Complex transforms along the middle index of [plane][x or y][mz], of kLines neighbouring lines at a time.
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

void copy_box(const Complex* from, const ArrayBox& source, Complex* to, const ArrayBox& target) {
  const auto [planes, rows, length] = source.count;
#pragma omp parallel for collapse(2) schedule(static)
  for (std::size_t i = 0; i < planes; ++i) {
    for (std::size_t j = 0; j < rows; ++j) {
      std::copy_n(from + source.at(i, j), length, to + target.at(i, j));
    }
  }
}

namespace {

// The boxes of an array that a rank sends to another and receives from it.
struct BoxSwap {
  int peer;
  ArrayBox out, in;
};

// All boxes are copied out of the array before any is received, so that they may overlap. A rank may send to itself.
// Collective among the ranks that have to send or to receive.
void swap_boxes(const Communicator& ranks, Complex* array, const std::vector<BoxSwap>& swaps) {
  std::size_t leaving = 0, coming = 0;
  for (const BoxSwap& swap : swaps) leaving += swap.out.numbers(), coming += swap.in.numbers();
  std::vector<Complex> sent(leaving), received(coming);
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  std::size_t to = 0, from = 0;
  for (const auto& [peer, leaves, comes] : swaps) {
    copy_box(array, leaves, sent.data(), leaves.packed(to));
    out.push_back({peer, sent.data() + to, leaves.numbers() * sizeof(Complex)});
    in.push_back({peer, received.data() + from, comes.numbers() * sizeof(Complex)});
    to += leaves.numbers(), from += comes.numbers();
  }
  ranks.exchange(out, in);
  from = 0;
  for (const BoxSwap& swap : swaps) {
    copy_box(received.data(), swap.in.packed(from), array, swap.in);
    from += swap.in.numbers();
  }
}

// How many of `units` go into one batch.
int batch_of(int units, std::size_t bytes_each, std::size_t bytes) {
  const std::size_t most = bytes / std::max<std::size_t>(bytes_each, 1);
  return static_cast<int>(std::clamp<std::size_t>(most, 1, static_cast<std::size_t>(std::max(units, 1))));
}

}  // namespace

// Transposes of a PeriodicGrid between the transforms along its axes: in place, except for a batch of messages.
//
// Within a row of ranks with planes of the same x: between some y and all mz, and all y and some mz. Planes stay in
// place, so that a few at a time can be exchanged.
void PeriodicGrid::exchange_in_row(bool to_modes) {
  if (layout_.grid().columns == 1 || planes() == 0) return;
  // The largest plane of the row, so that all ranks make the same batches.
  const std::size_t rows = static_cast<std::size_t>(n_ / layout_.grid().columns) + 1;
  const std::size_t largest = rows * (static_cast<std::size_t>(half()) + 1);
  const int batch = batch_of(planes(), largest * sizeof(Complex), message_bytes_);
  for (int first = 0; first < planes(); first += batch) {
    exchange_planes(first, std::min(batch, planes() - first), to_modes);
  }
}

void PeriodicGrid::exchange_planes(int first, int count, bool to_modes) {
  const std::size_t row = static_cast<std::size_t>(half()) + 1, base = static_cast<std::size_t>(first) * plane_;
  const auto planes = static_cast<std::size_t>(count);
  const int columns = layout_.grid().columns, first_rank = layout_.row_of(ranks_.rank()) * columns;
  std::vector<BoxSwap> swaps;
  for (int peer = first_rank; peer < first_rank + columns; ++peer) {
    const PencilRange y = layout_.box(Pencils::kReal, peer).along[1], mz = layout_.box(Pencils::kX, peer).along[2];
    const ArrayBox here = {.base = base + first_of(mz),
                           .count = {planes, counted(points_.along[1]), counted(mz)},
                           .step = {plane_, row}};
    const ArrayBox there = {.base = base + first_of(y) * mode_count(),
                            .count = {planes, counted(y), mode_count()},
                            .step = {plane_, mode_count()}};
    swaps.push_back({peer, to_modes ? here : there, to_modes ? there : here});
  }
  swap_boxes(ranks_, data_.data(), swaps);
}

// Within a column of ranks: [x][y] with all y becomes [y][x] with all x; the way back is the same. A rank sends as much
// to another as it receives from there, so that received numbers replace sent ones; a few mz at a time.
void PeriodicGrid::swap_x_and_y() {
  if (planes() == 0) return;
  swap_own_block();
  if (layout_.grid().rows == 1) return;
  const auto modes = static_cast<int>(mode_count());
  const std::size_t largest = static_cast<std::size_t>(n_ / layout_.grid().rows + 1) * static_cast<std::size_t>(n_);
  const int batch = batch_of(modes, largest * sizeof(Complex), message_bytes_);
  for (int first = 0; first < modes; first += batch) swap_blocks(first, std::min(batch, modes - first));
}

void PeriodicGrid::swap_own_block() {
  Complex* const corner = data_.data() + first_of(modes_.along[1]) * mode_count();
  const std::size_t length = mode_count();
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < planes(); ++i) {
    for (int j = 0; j < i; ++j) {
      Complex* a = corner + static_cast<std::size_t>(i) * plane_ + static_cast<std::size_t>(j) * length;
      Complex* b = corner + static_cast<std::size_t>(j) * plane_ + static_cast<std::size_t>(i) * length;
      std::swap_ranges(a, a + length, b);
    }
  }
}

void PeriodicGrid::swap_blocks(int first, int count) {
  const auto length = static_cast<std::size_t>(count), mine = static_cast<std::size_t>(planes());
  const PencilGrid grid = layout_.grid();
  std::vector<BoxSwap> swaps;
  for (int row = 0; row < grid.rows; ++row) {
    const int peer = row * grid.columns + layout_.column_of(ranks_.rank());
    if (peer == ranks_.rank()) continue;
    const PencilRange its = layout_.box(Pencils::kX, peer).along[1];
    const std::size_t base = first_of(its) * mode_count() + static_cast<std::size_t>(first);
    swaps.push_back({peer,
                     {.base = base, .count = {mine, counted(its), length}, .step = {plane_, mode_count()}},
                     {.base = base, .count = {counted(its), mine, length}, .step = {mode_count(), plane_}}});
  }
  swap_boxes(ranks_, data_.data(), swaps);
}

}  // namespace maki
