// What a cell of a mesh is predicted from: cells that came before it, and where the mesh is the shifted one those of the
// first mesh around it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace maki::sites {

inline constexpr int kMostFeatures = 13;
inline constexpr int kNearBits = 28;  // the sum of eight still has 31

// One mesh of a block, its values divided by a power of two so that they are below 2^28. Each row has two more
// cells on both sides, where the mesh goes around.
class NearCells {
 public:
  static constexpr int kPad = 2;
  NearCells(int planes, int rows, int length);

  std::int32_t* row(int x, int y) { return values_.data() + index(x, y); }
  const std::int32_t* row(int x, int y) const { return values_.data() + index(x, y); }
  // The nearest row of that plane; of a plane below 0 one of zeros.
  const std::int32_t* near(int x, int y) const;
  // The row `by` rows before this one; where the plane begins, that of the plane before.
  const std::int32_t* before(int x, int y, int by) const { return y >= by ? row(x, y - by) : near(x - 1, 0); }
  void open(int x, int y);   // before a row is filled: what stands left of it
  void close(int x, int y);  // when it is filled

 private:
  std::size_t index(int x, int y) const;
  int planes_, rows_, length_;
  std::size_t step_;
  std::vector<std::int32_t> values_, zeros_;
};

// The features of one row after another: feature f of cell z is [f][z]. The last kOwn are cells of the row itself.
class Surroundings {
 public:
  static constexpr int kOwn = 2;
  // `first`: of the shifted mesh, else null.
  Surroundings(const NearCells& own, const NearCells* first, int length);
  int count() const { return first_ ? 10 : kMostFeatures; }
  const std::array<const std::int32_t*, kMostFeatures>& of(int x, int y);

 private:
  using Four = std::array<const std::int32_t*, 4>;
  Four four(int x0, int x1, int y0, int y1) const;
  const std::int32_t* mean(int place, const Four& rows, int z0, int z1);

  const NearCells& own_;
  const NearCells* first_;
  int length_;
  std::array<std::vector<std::int32_t>, 4> means_;
  std::array<const std::int32_t*, kMostFeatures> features_{};
};

// Weights of features, in 1/4096, and how they are found: least squares over cells, each counted by how large the
// features around it differ.
using Weights = std::array<std::int32_t, kMostFeatures>;
inline constexpr int kWeightBits = 12;

class WeightFit {
 public:
  explicit WeightFit(int count) : count_(count) {}
  void add(const std::array<const std::int32_t*, kMostFeatures>& features, int z, std::int32_t value);
  Weights weights() const;

 private:
  int count_;
  std::array<std::array<double, kMostFeatures + 1>, kMostFeatures> sums_{};
};

}  // namespace maki::sites
