#include "wan/sites/mesh_surroundings.hpp"

#include <algorithm>
#include <cmath>

namespace maki::sites {

Surroundings::Surroundings(const NearCells& own, const NearCells* first) : own_(own), first_(first) {
  if (first)
    for (auto& row : sums_) row.resize(2 * static_cast<std::size_t>(own.half_step()));
}

const std::int32_t* Surroundings::sum_of(int place, int x0, int x1, int y0, int y1) {
  std::vector<std::int32_t>& sums = sums_[static_cast<std::size_t>(place)];
  x0 = std::max(x0, 0);
  constexpr int kPad = NearCells::kPad;
  add_rows({first_->near(x0, y0) - kPad, first_->near(x0, y1) - kPad, first_->near(x1, y0) - kPad,
            first_->near(x1, y1) - kPad},
           2 * own_.half_step(), sums.data());
  return sums.data() + kPad;
}

namespace {

// The cells of a row (given by its even ones) `by` cells before and after those that are asked for.
struct Around {
  int odd, step;
  const std::int32_t* at(const std::int32_t* row, int by) const {
    const int cell = odd + by;
    return row + (cell & 1) * step + (cell >> 1);
  }
};

struct List {
  Features& features;
  Around around;
  void pair(const std::int32_t* row, int low, int high, float cells = 1) {
    put(around.at(row, low), around.at(row, high), 2 * cells);
    ++features.pairs;
  }
  void single(const std::int32_t* row) {
    put(around.at(row, 0), nullptr, 1);
    ++features.singles;
  }
  void put(const std::int32_t* first, const std::int32_t* second, float cells) {
    const auto f = static_cast<std::size_t>(features.count());
    features.first[f] = first;
    features.second[f] = second;
    features.cells[f] = cells;
  }
};

}  // namespace

const Features& Surroundings::of(int x, int y, int odd) {
  const std::int32_t *above = own_.before(x, y, 1), *behind = own_.near(x - 1, y), *here = own_.row(x, y, 0),
                     *behind2 = own_.near(x > 0 ? std::max(x - 2, 0) : -1, y);
  features_.pairs = features_.singles = 0;
  List list{features_, {odd, own_.half_step()}};
  if (first_) {
    if (!odd) {
      sum_of(0, x - 1, x, y - 1, y);
      sum_of(1, x - 1, x, y - 2, y + 1);
      sum_of(2, x - 2, x + 1, y - 1, y);
    }
    const auto sums = [&](std::size_t i) { return sums_[i].data() + NearCells::kPad; };
    list.pair(sums(0), -1, 0, 4);
    list.pair(sums(0), -2, 1, 4);
    list.pair(sums(1), -1, 0, 4);
    list.pair(sums(2), -1, 0, 4);
    list.pair(above, -1, 1);
    list.pair(behind, -1, 1);
    if (odd) list.pair(here, -1, 1);
    list.single(above);
    list.single(behind);
    list.single(own_.before(x, y, 2));
    list.single(behind2);
    list.single(own_.near(x - 1, y - 1));
    list.single(own_.near(x - 1, y + 1));
    return features_;
  }
  const std::int32_t *above2 = own_.before(x, y, 2), *over = own_.near(x - 1, y - 1);
  list.pair(above, -1, 1);
  list.pair(behind, -1, 1);
  list.pair(over, -1, 1);
  if (odd) list.pair(here, -1, 1);
  list.single(above);
  list.single(behind);
  list.single(over);
  list.single(above2);
  list.single(behind2);
  list.single(own_.near(x - 1, y - 2));
  return features_;
}

void WeightFit::add(const Features& features, const std::int32_t* values, int from, int cells) {
  constexpr int kMost = kSegment;
  const auto n = count_ = static_cast<std::size_t>(features.count());
  alignas(64) double column[kColumns][kMost] = {}, weighted[kColumns][kMost];
  double mean[kMost] = {}, square[kMost] = {}, weight[kMost];
  for (std::size_t f = 0; f <= n; ++f) {
    const bool pair = f < static_cast<std::size_t>(features.pairs);
    const std::int32_t* a = (f < n ? features.first[f] : values) + from;
    const std::int32_t* b = pair ? features.second[f] + from : nullptr;
    for (int i = 0; i < cells; ++i) column[f][i] = b ? a[i] + b[i] : a[i];
    if (f == n) break;
    const double part = 1 / static_cast<double>(features.cells[f]);
    for (int i = 0; i < kMost; ++i) {
      mean[i] += column[f][i] * part;
      square[i] += column[f][i] * part * (column[f][i] * part);
    }
  }
  for (int i = 0; i < kMost; ++i) {
    const double m = mean[i] / static_cast<double>(n), variance = square[i] / static_cast<double>(n) - m * m;
    weight[i] = 1 / ((variance > 0 ? variance : 0) + 1e-4 * m * m + 1);
  }
  for (std::size_t f = 0; f <= n; ++f)
    for (int i = 0; i < kMost; ++i) weighted[f][i] = weight[i] * column[f][i];
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i; j <= n; ++j) sums_[i][j] += weighted_product(weighted[i], column[j], kMost);
}

// Gauss's elimination of a matrix that is positive after a little is added to its diagonal.
Weights WeightFit::weights() const {
  auto a = sums_;
  const std::size_t n = count_;
  double trace = 0;
  for (std::size_t i = 0; i < n; ++i) {
    a[i][n] = sums_[i][n];
    trace += a[i][i];
    for (std::size_t j = 0; j < i; ++j) a[i][j] = a[j][i];
  }
  for (std::size_t i = 0; i < n; ++i) a[i][i] += 1e-9 * trace + 1e-30;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = i + 1; k < n; ++k) {
      const double factor = a[k][i] / a[i][i];
      for (std::size_t j = i; j <= n; ++j) a[k][j] -= factor * a[i][j];
    }
  }
  std::array<double, Features::kMost> found{};
  for (std::size_t i = n; i-- > 0;) {
    double rest = a[i][n];
    for (std::size_t j = i + 1; j < n; ++j) rest -= a[i][j] * found[j];
    found[i] = rest / a[i][i];
  }
  Weights weights{};
  for (std::size_t i = 0; i < n; ++i)
    weights[i] = static_cast<std::int32_t>(std::lround(std::clamp(found[i], -7.9, 7.9) * (1 << kWeightBits)));
  return weights;
}

}  // namespace maki::sites
