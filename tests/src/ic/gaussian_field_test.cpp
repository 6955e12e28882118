#include "src/ic/lagrangian.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "src/ic/periodic_grid.hpp"

namespace maki {
namespace {

TEST(PeriodicGrid, OneModeIsOneWave) {
  const int n = 12;
  PeriodicGrid grid(n);
  const int m[3] = {-2, 3, 1};
  grid.mode_row(grid.index_of(m[0]), grid.index_of(m[1]))[m[2]] = {0.3, 0.4};
  grid.to_points();
  for (int ix = 0; ix < n; ++ix) {
    for (int iy = 0; iy < n; ++iy) {
      for (int iz = 0; iz < n; ++iz) {
        const double phase = 2 * std::numbers::pi / n * (m[0] * ix + m[1] * iy + m[2] * iz);
        // The mode and its conjugate.
        EXPECT_NEAR(grid.row(ix, iy)[iz], 2 * (0.3 * std::cos(phase) - 0.4 * std::sin(phase)), 1e-14);
      }
    }
  }
}

TEST(PeriodicGrid, NumbersItsModes) {
  const PeriodicGrid grid(8);
  EXPECT_EQ(grid.wave_number(4), 4);
  EXPECT_EQ(grid.wave_number(5), -3);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(grid.index_of(grid.wave_number(i)), i);
}

TEST(PeriodicGrid, RefusesOddSizes) {
  EXPECT_THROW(PeriodicGrid(7), std::invalid_argument);
  EXPECT_THROW(PeriodicGrid(0), std::invalid_argument);
}

PowerSpectrum power_spectrum() { return PowerSpectrum({}, CosmologyParameters{}, UnitSystem{}); }

TEST(GaussianField, OppositeModesAreConjugate) {
  GaussianFieldParameters p;
  p.seed = 0x123456789abcdefULL;
  for (const auto& [x, y, z] : {std::array{1, 2, 3}, {-4, 0, 7}, {5, -6, 0}, {9, 0, 0}, {0, 3, -1}})
    EXPECT_EQ(random_mode(p, x, y, z), std::conj(random_mode(p, -x, -y, -z)));
}

TEST(GaussianField, ModesAreGaussianOfUnitMeanSquare) {
  const GaussianFieldParameters p;
  double second = 0, fourth = 0, count = 0;
  std::complex<double> mean = 0, square = 0;
  for (int x = -24; x < 24; ++x) {
    for (int y = -24; y < 24; ++y) {
      for (int z = 1; z < 24; ++z) {
        const auto value = random_mode(p, x, y, z);
        mean += value;
        square += value * value;
        second += std::norm(value);
        fourth += std::norm(value) * std::norm(value);
        ++count;
      }
    }
  }
  // Five standard deviations of each average: 1, 1, sqrt(20), 1, sqrt(2) by sqrt(count).
  const double sigma = 5 / std::sqrt(count);
  EXPECT_NEAR(second / count, 1, sigma);
  EXPECT_NEAR(fourth / count, 2, 4.5 * sigma);
  EXPECT_LT(std::abs(mean) / count, sigma);
  EXPECT_LT(std::abs(square) / count, 1.5 * sigma);
}

TEST(GaussianField, PairedAndFixed) {
  GaussianFieldParameters plain, fixed, flipped;
  fixed.fixed_amplitudes = true;
  flipped.flip_phases = true;
  const auto a = random_mode(plain, 3, -2, 5), b = random_mode(fixed, 3, -2, 5);
  EXPECT_NEAR(std::abs(b), 1, 1e-14);
  EXPECT_NEAR(std::arg(a), std::arg(b), 1e-14);
  EXPECT_EQ(random_mode(flipped, 3, -2, 5), -a);
  GaussianFieldParameters other;
  other.seed = plain.seed + (1ULL << 32);
  EXPECT_NE(random_mode(other, 3, -2, 5), a);
}

TEST(GaussianField, MeasuredPowerIsTheInput) {
  const int n = 48;
  const double box = 200;
  const PowerSpectrum power = power_spectrum();
  GaussianFieldParameters p;
  for (bool fixed : {false, true}) {
    p.fixed_amplitudes = fixed;
    PeriodicGrid grid = make_linear_density(p, power, box, n);
    grid.to_points();  // through the points, so that a wrong symmetry would show
    grid.to_modes();
    std::vector<double> ratio(n / 2, 0.0), count(n / 2, 0.0);
    for (int ix = 0; ix < n; ++ix) {
      for (int iy = 0; iy < n; ++iy) {
        for (int mz = 0; mz < n / 2; ++mz) {
          const int mx = grid.wave_number(ix), my = grid.wave_number(iy);
          const double m = std::sqrt(mx * mx + my * my + mz * mz);
          if (m < 1 || m >= n / 2) continue;
          const double weight = mz == 0 ? 1 : 2;
          const double expected = power(2 * std::numbers::pi / box * m) / (box * box * box);
          ratio[static_cast<int>(m)] += weight * std::norm(grid.mode_row(ix, iy)[mz]) / expected;
          count[static_cast<int>(m)] += weight;
        }
      }
    }
    for (int m = 1; m < n / 2; ++m) {
      const double tolerance = fixed ? 1e-9 : 5 / std::sqrt(count[m] / 2);  // two members a pair
      EXPECT_NEAR(ratio[m] / count[m], 1, tolerance) << m << (fixed ? " fixed" : "");
    }
  }
}

TEST(GaussianField, SameUniverseAtAnyResolution) {
  const PowerSpectrum power = power_spectrum();
  const PeriodicGrid coarse = make_linear_density({}, power, 100, 32), fine = make_linear_density({}, power, 100, 64);
  for (int mx = -15; mx <= 15; ++mx) {
    for (int my = -15; my <= 15; ++my)
      for (int mz = 0; mz <= 15; ++mz)
        ASSERT_EQ(coarse.mode_row(coarse.index_of(mx), coarse.index_of(my))[mz],
                  fine.mode_row(fine.index_of(mx), fine.index_of(my))[mz]);
  }
}

}  // namespace
}  // namespace maki
