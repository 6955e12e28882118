// What a cell of a mesh is predicted from: cells that are known before it, and where the mesh is the shifted one those
// of the first mesh around it.
//
// The even cells of a row come before its odd ones, and are kept apart: what a half row is predicted from is then known
// as a whole and lies in order, and the odd ones have both their neighbours.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "wan/sites/mesh_loops.hpp"

namespace maki::sites {

// The last planes of one mesh of a block. A row has its even cells, then its odd ones, both with kPad more on either
// side, where the mesh goes around.
template <class T>
class HalfRows {
 public:
  static constexpr int kPad = 2;
  // The last `kept` planes. `length` is even.
  HalfRows(int planes, int kept, int rows, int length)
      : planes_(planes), kept_(kept), rows_(rows), half_(length / 2), zeros_(row_size()) {
    values_ = std::make_unique_for_overwrite<T[]>(row_size() * counted(kept) * counted(rows));
  }

  T* row(int x, int y, int odd) { return values_.get() + index(x, y) + odd * half_step(); }
  const T* row(int x, int y, int odd) const { return values_.get() + index(x, y) + odd * half_step(); }
  // The even cells of the nearest row of that plane; of a plane below 0 those of a row of zeros.
  const T* near(int x, int y) const {
    return x < 0 ? zeros_.data() + kPad : row(std::min(x, planes_ - 1), std::clamp(y, 0, rows_ - 1), 0);
  }
  // The same of the row `by` rows before this one; where the plane begins, that of the plane before.
  const T* before(int x, int y, int by) const { return y >= by ? row(x, y - by, 0) : near(x - 1, 0); }
  // When half a row is filled.
  void close(int x, int y, int odd) {
    T* r = row(x, y, odd);
    for (int i = 1; i <= kPad; ++i) {
      r[-i] = r[(2 * half_ - i) % half_];
      r[half_ - 1 + i] = r[(i - 1) % half_];
    }
  }
  void clear(int x) { std::fill_n(values_.get() + index(x, 0) - kPad, row_size() * counted(rows_), T{}); }
  int half() const { return half_; }
  int half_step() const { return half_ + 2 * kPad; }  // from even cells to the odd ones

 private:
  static std::size_t counted(int n) { return static_cast<std::size_t>(n); }
  std::size_t row_size() const { return 2 * counted(half_step()); }
  std::size_t index(int x, int y) const {
    return row_size() * (counted(x % kept_) * counted(rows_) + counted(y)) + kPad;
  }
  int planes_, kept_, rows_, half_;
  std::unique_ptr<T[]> values_;
  std::vector<T> zeros_;
};

using NearCells = HalfRows<std::int32_t>;

// The features of one half row after another.
class Surroundings {
 public:
  // `first`: of the shifted mesh, else null.
  Surroundings(const NearCells& own, const NearCells* first);
  // Of the odd cells once the even ones of the same row were asked for.
  const Features& of(int x, int y, int odd);
  static int count(bool shifted, int odd) { return (shifted ? 12 : 9) + odd; }

 private:
  const std::int32_t* sum_of(int place, int x0, int x1, int y0, int y1);

  const NearCells& own_;
  const NearCells* first_;
  std::array<std::vector<std::int32_t>, 3> sums_;  // of four rows each
  Features features_;
};

// Weights of features, in 2^-kWeightBits, and how they are found: least squares over cells, each counted by how much
// the features around it differ.
using Weights = std::array<std::int32_t, Features::kMost>;

class WeightFit {
 public:
  // Of cells from, ..., from + kSegment - 1.
  static constexpr int kSegment = 32;
  void add(const Features& features, const std::int32_t* values, int from, int cells);
  Weights weights() const;

 private:
  static constexpr std::size_t kColumns = Features::kMost + 1;
  std::size_t count_ = 0;
  std::array<std::array<double, kColumns>, kColumns> sums_{};
};

}  // namespace maki::sites
