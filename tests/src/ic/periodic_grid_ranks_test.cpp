#include "src/ic/periodic_grid.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>

namespace maki {
namespace {

double value(int ix, int iy, int iz) { return std::sin(1 + 3.7 * ix + 1.3 * iy * iy + 0.9 * iz * ix); }

void fill(PeriodicGrid& grid) {
  const auto& [x, y, z] = grid.points().along;
  for (int ix = x.first; ix < x.end; ++ix) {
    for (int iy = y.first; iy < y.end; ++iy) {
      for (int iz = 0; iz < grid.n(); ++iz) grid.row(ix, iy)[iz] = value(ix, iy, iz);
    }
  }
}

struct Case {
  int n;
  std::size_t message_bytes;
};

class GridOverRanks : public testing::TestWithParam<Case> {
 protected:
  PeriodicGrid make() const { return PeriodicGrid(GetParam().n, Communicator::world(), {GetParam().message_bytes}); }
};
INSTANTIATE_TEST_SUITE_P(InOneBatch, GridOverRanks,
                         testing::Values(Case{2, 1 << 26}, Case{6, 1 << 26}, Case{16, 1 << 26}, Case{30, 1 << 26}));
INSTANTIATE_TEST_SUITE_P(InManyBatches, GridOverRanks,
                         testing::Values(Case{2, 1}, Case{6, 1}, Case{16, 2000}, Case{30, 10000}));

TEST_P(GridOverRanks, ModesAndPointsAreThoseOfOneRank) {
  PeriodicGrid grid = make(), whole(grid.n());
  fill(grid);
  fill(whole);
  grid.to_modes();
  whole.to_modes();
  int off = 0;
  const auto& [x, y, z] = grid.modes().along;
  for (int ix = x.first; ix < x.end; ++ix) {
    for (int iy = y.first; iy < y.end; ++iy) {
      for (int mz = z.first; mz < z.end; ++mz) {
        off += grid.mode_row(ix, iy)[mz - z.first] != whole.mode_row(ix, iy)[mz];
      }
    }
  }
  EXPECT_EQ(off, 0);
  grid.to_points();
  whole.to_points();
  const auto& points = grid.points().along;
  for (int ix = points[0].first; ix < points[0].end; ++ix) {
    for (int iy = points[1].first; iy < points[1].end; ++iy) {
      for (int iz = 0; iz < grid.n(); ++iz) off += grid.row(ix, iy)[iz] != whole.row(ix, iy)[iz];
    }
  }
  EXPECT_EQ(off, 0);
}

TEST_P(GridOverRanks, ValuesReachTheSharesInOrder) {
  PeriodicGrid grid = make();
  fill(grid);
  const Share share = sites_of(grid, grid.ranks().rank());
  std::vector<double> got(share.size(), NAN);
  std::vector<int> times(share.size(), 0);
  visit_share(grid, [&](std::uint64_t first, int count, const double* values) {
    for (int i = 0; i < count; ++i) {
      got.at(first - share.first + i) = values[i];
      ++times[first - share.first + i];
    }
  });
  const auto n = static_cast<std::uint64_t>(grid.n());
  int off = 0;
  for (std::uint64_t i = share.first; i < share.end; ++i) {
    off += times[i - share.first] != 1;
    off += got[i - share.first] !=
           value(static_cast<int>(i / (n * n)), static_cast<int>(i / n % n), static_cast<int>(i % n));
  }
  EXPECT_EQ(off, 0);
}

// A number that names its mode.
PeriodicGrid::Complex name_of(int mx, int my, int mz) { return {1000.0 * mx + my, static_cast<double>(mz)}; }

TEST_P(GridOverRanks, ModesReachAnotherGrid) {
  PeriodicGrid source = make();
  const auto& [x, y, z] = source.modes().along;
  for (int iy = y.first; iy < y.end; ++iy) {
    for (int ix = 0; ix < source.n(); ++ix) {
      for (int mz = z.first; mz < z.end; ++mz) {
        source.mode_row(ix, iy)[mz - z.first] = name_of(source.wave_number(ix), source.wave_number(iy), mz);
      }
    }
  }
  for (const int n : {source.n(), 2, 4, (3 * source.n() / 2 + 1) / 2 * 2, 2 * source.n() + 6}) {
    const PeriodicGrid target(n, Communicator::world());
    const int half = std::min(source.half(), target.half());
    std::set<std::tuple<int, int, int>> seen;
    int off = 0;
    visit_common_modes(source, target, [&](int mx, int my, const PencilRange& mz, const PeriodicGrid::Complex* values) {
#pragma omp critical
      for (int m = mz.first; m < mz.end; ++m) {
        off += values[m - mz.first] != name_of(mx, my, m);
        off += !seen.emplace(mx, my, m).second;
      }
    });
    EXPECT_EQ(off, 0);
    std::set<std::tuple<int, int, int>> expected;
    const auto& [tx, ty, tz] = target.modes().along;
    for (int iy = ty.first; iy < ty.end; ++iy) {
      for (int mx = 1 - half; mx < half; ++mx) {
        const int my = target.wave_number(iy);
        if (std::abs(my) >= half) continue;
        for (int mz = tz.first; mz < std::min(tz.end, half); ++mz) expected.emplace(mx, my, mz);
      }
    }
    EXPECT_EQ(seen, expected);
  }
}

}  // namespace
}  // namespace maki
