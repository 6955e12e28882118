#include "host/fft/pencil_layout.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/error.hpp"

namespace maki {
namespace {

constexpr double kUneven = 1.05;  // how much more than the least the fullest rank may hold for a squarer grid

void check(int m, int ranks) {
  if (m < 2 || m % 2)
    throw Error("a mesh of " + std::to_string(m) + " cells a side", "it has to be even", "choose an even number");
  if (ranks < 1) throw Error("a mesh over " + std::to_string(ranks) + " ranks", "at least one is needed", "add ranks");
}

// Numbers that the fullest rank transforms in the three layouts together.
double fullest(int m, PencilGrid grid) {
  const auto largest = [](int n, int parts) { return double((n + parts - 1) / parts); };
  const int modes = m / 2 + 1;
  const double x = largest(m, grid.rows), y = largest(m, grid.columns), kz = largest(modes, grid.columns);
  return x * y * modes + 2 * x * kz * m;
}

PencilGrid choose_grid(int m, int ranks) {
  double least = fullest(m, {1, 1});
  for (int p = 1; p <= std::min(ranks, m); ++p)
    for (int q = 1; q <= std::min(ranks / p, m); ++q) least = std::min(least, fullest(m, {p, q}));
  PencilGrid best{1, 1};
  double best_skew = -1, best_load = 0;
  for (int p = 1; p <= std::min(ranks, m); ++p) {
    for (int q = 1; q <= std::min(ranks / p, m); ++q) {
      const double load = fullest(m, {p, q});
      const double skew = std::abs(std::log(double(p) / q));
      if (load > kUneven * least) continue;
      if (best_skew >= 0 && (skew > best_skew || (skew == best_skew && load >= best_load))) continue;
      best = {p, q};
      best_skew = skew;
      best_load = load;
    }
  }
  return best;
}

}  // namespace

std::size_t PencilBox::cells() const {
  std::size_t product = 1;
  for (const PencilRange& range : along) product *= static_cast<std::size_t>(range.count());
  return product;
}

PencilBox overlap(const PencilBox& a, const PencilBox& b) {
  PencilBox common;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    common.along[axis].first = std::max(a.along[axis].first, b.along[axis].first);
    common.along[axis].end = std::min(a.along[axis].end, b.along[axis].end);
  }
  return common;
}

PencilRange pencil_block(int n, int parts, int i) {
  const auto begin = [&](long long k) { return static_cast<int>(k * n / parts); };
  return {begin(i), begin(i + 1)};
}

PencilLayout::PencilLayout(int m, int ranks) : m_(m), ranks_(ranks) {
  check(m, ranks);
  grid_ = choose_grid(m, ranks);
}

PencilLayout::PencilLayout(int m, int ranks, PencilGrid grid) : m_(m), ranks_(ranks), grid_(grid) {
  check(m, ranks);
  if (grid.rows < 1 || grid.columns < 1 || grid.rows > ranks / grid.columns)
    throw Error("a grid of " + std::to_string(grid.rows) + " x " + std::to_string(grid.columns) + " ranks",
                "there are " + std::to_string(ranks), "choose one that they can fill");
}

PencilBox PencilLayout::box(Pencils pencils, int rank) const {
  if (!takes_part(rank)) return {};
  const int modes = m_ / 2 + 1;
  const PencilRange whole{0, m_};
  const PencilRange row = pencil_block(m_, grid_.rows, row_of(rank));
  const PencilRange column = pencil_block(m_, grid_.columns, column_of(rank));
  const PencilRange mode_column = pencil_block(modes, grid_.columns, column_of(rank));
  switch (pencils) {
    case Pencils::kReal: return {{row, column, whole}};
    case Pencils::kZ: return {{row, column, {0, modes}}};
    case Pencils::kY: return {{row, whole, mode_column}};
    case Pencils::kX: return {{whole, row, mode_column}};
  }
  return {};
}

std::array<int, 3> PencilLayout::order(Pencils pencils) {
  switch (pencils) {
    case Pencils::kY: return {0, 2, 1};
    case Pencils::kX: return {1, 2, 0};
    default: return {0, 1, 2};
  }
}

std::size_t PencilLayout::lines(Pencils pencils, int rank) const {
  const PencilBox held = box(pencils, rank);
  const std::array<int, 3> axes = order(pencils);
  return static_cast<std::size_t>(held.along[axes[0]].count()) * static_cast<std::size_t>(held.along[axes[1]].count());
}

}  // namespace maki
