#include "src/analysis/adaptive_smoothing.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace maki {
namespace {

constexpr std::size_t kSize = 128;

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(SmoothWhereSparse, LeavesAnEvenPictureAlone) {
  for (const double value : {0.0, 0.01, 3.0, 1000.0}) {
    for (const double smooth : smooth_where_sparse(std::vector<double>(kSize * kSize, value), kSize)) {
      EXPECT_NEAR(smooth, value, 1e-12 * value);
    }
  }
}

TEST(SmoothWhereSparse, SpreadsSingleParticles) {
  std::vector<double> counts(kSize * kSize, 0.0);
  for (std::size_t i = 0; i < counts.size(); i += 67) counts[i] = 1;  // one in 67 pixels
  const std::vector<double> smooth = smooth_where_sparse(counts, kSize);
  EXPECT_NEAR(sum(smooth) / sum(counts), 1, 0.02);
  for (std::size_t y = 32; y < 96; ++y) {
    for (std::size_t x = 32; x < 96; ++x) EXPECT_NEAR(smooth[y * kSize + x] * 67, 1, 0.6);
  }
}

TEST(SmoothWhereSparse, KeepsWhatIsDense) {
  std::vector<double> counts(kSize * kSize, 0.0);
  for (std::size_t y = 60; y < 68; ++y) {
    for (std::size_t x = 60; x < 68; ++x) counts[y * kSize + x] = 1e4;
  }
  const std::vector<double> smooth = smooth_where_sparse(counts, kSize);
  EXPECT_NEAR(smooth[64 * kSize + 64], 1e4, 1);
  EXPECT_LT(smooth[64 * kSize + 74], 1e2);
  EXPECT_NEAR(sum(smooth) / sum(counts), 1, 0.1);
}

}  // namespace
}  // namespace maki
