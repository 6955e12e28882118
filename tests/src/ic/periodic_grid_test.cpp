#include "src/ic/periodic_grid.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

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

TEST(PeriodicGrid, ThereAndBackAgain) {
  for (int n : {2, 6, 16, 30}) {
    PeriodicGrid grid(n);
    const auto value = [](int ix, int iy, int iz) { return std::sin(1 + 3.7 * ix + 1.3 * iy * iy + 0.9 * iz * ix); };
    for (int ix = 0; ix < n; ++ix) {
      for (int iy = 0; iy < n; ++iy) {
        for (int iz = 0; iz < n; ++iz) grid.row(ix, iy)[iz] = value(ix, iy, iz);
      }
    }
    grid.to_modes();
    grid.to_points();
    for (int ix = 0; ix < n; ++ix) {
      for (int iy = 0; iy < n; ++iy) {
        for (int iz = 0; iz < n; ++iz) EXPECT_NEAR(grid.row(ix, iy)[iz], value(ix, iy, iz), 1e-14);
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

}  // namespace
}  // namespace maki
