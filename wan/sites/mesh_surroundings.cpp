#include "wan/sites/mesh_surroundings.hpp"

#include <algorithm>
#include <cmath>

namespace maki::sites {

NearCells::NearCells(int planes, int rows, int length)
    : planes_(planes),
      rows_(rows),
      length_(length),
      step_(static_cast<std::size_t>(length + 2 * kPad)),
      values_(step_ * static_cast<std::size_t>(planes) * static_cast<std::size_t>(rows)),
      zeros_(step_) {}

std::size_t NearCells::index(int x, int y) const {
  return step_ * (static_cast<std::size_t>(x) * static_cast<std::size_t>(rows_) + static_cast<std::size_t>(y)) + kPad;
}

const std::int32_t* NearCells::near(int x, int y) const {
  return x < 0 ? zeros_.data() + kPad : row(std::min(x, planes_ - 1), std::clamp(y, 0, rows_ - 1));
}

void NearCells::open(int x, int y) {
  const std::int32_t* above = before(x, y, 1);
  for (int i = 1; i <= kPad; ++i) row(x, y)[-i] = above[-i];
}

void NearCells::close(int x, int y) {
  std::int32_t* r = row(x, y);
  for (int i = 1; i <= kPad; ++i) {
    r[-i] = r[(2 * length_ - i) % length_];
    r[length_ - 1 + i] = r[(i - 1) % length_];
  }
}

Surroundings::Surroundings(const NearCells& own, const NearCells* first, int length)
    : own_(own), first_(first), length_(length) {
  for (auto& row : means_) row.resize(static_cast<std::size_t>(length));
}

Surroundings::Four Surroundings::four(int x0, int x1, int y0, int y1) const {
  x0 = std::max(x0, 0);
  return {first_->near(x0, y0), first_->near(x0, y1), first_->near(x1, y0), first_->near(x1, y1)};
}

const std::int32_t* Surroundings::mean(int place, const Four& rows, int z0, int z1) {
  std::vector<std::int32_t>& out = means_[static_cast<std::size_t>(place)];
  for (int z = 0; z < length_; ++z) {
    const std::int32_t low = rows[0][z + z0] + rows[1][z + z0] + rows[2][z + z0] + rows[3][z + z0];
    const std::int32_t high = rows[0][z + z1] + rows[1][z + z1] + rows[2][z + z1] + rows[3][z + z1];
    out[static_cast<std::size_t>(z)] = (low + high) >> 3;
  }
  return out.data();
}

const std::array<const std::int32_t*, kMostFeatures>& Surroundings::of(int x, int y) {
  const std::int32_t *above = own_.before(x, y, 1), *behind = own_.near(x - 1, y), *here = own_.row(x, y);
  if (first_) {
    const Four core = four(x - 1, x, y - 1, y);
    features_ = {mean(0, core, -1, 0), mean(1, core, -2, 1), mean(2, four(x - 1, x, y - 2, y + 1), -1, 0),
                 mean(3, four(x - 2, x + 1, y - 1, y), -1, 0), above, above - 1, above + 1, behind, here - 1, here - 2};
    return features_;
  }
  const std::int32_t *below = own_.near(x - 1, y + 1), *over = own_.near(x - 1, y - 1);
  features_ = {above, above - 1, above + 1, own_.before(x, y, 2), behind, behind - 1, behind + 1,
               over,      below,     over - 1,             own_.near(x - 2, y),          here - 1, here - 2};
  return features_;
}

void WeightFit::add(const std::array<const std::int32_t*, kMostFeatures>& features, int z, std::int32_t value) {
  std::array<double, kMostFeatures + 1> row{};
  double mean = 0, square = 0;
  for (int i = 0; i < count_; ++i) {
    const double f = row[static_cast<std::size_t>(i)] = features[static_cast<std::size_t>(i)][z];
    mean += f;
    square += f * f;
  }
  row[static_cast<std::size_t>(count_)] = value;
  mean /= count_;
  const double weight = 1 / (std::max(square / count_ - mean * mean, 0.0) + 1e-4 * mean * mean + 1);
  for (int i = 0; i < count_; ++i)
    for (int j = i; j <= count_; ++j)
      sums_[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] +=
          weight * row[static_cast<std::size_t>(i)] * row[static_cast<std::size_t>(j)];
}

// Gauss's elimination of a matrix that is positive after a little is added to its diagonal.
Weights WeightFit::weights() const {
  auto a = sums_;
  const auto n = static_cast<std::size_t>(count_);
  double trace = 0;
  for (std::size_t i = 0; i < n; ++i) {
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
  std::array<double, kMostFeatures> found{};
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
