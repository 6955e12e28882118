#include "src/ic/periodic_grid.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "src/ic/lagrangian.hpp"
#include "src/ic/models.hpp"
#include "tests/src/io/io_helpers.hpp"

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
      for (int iz = 0; iz < grid.n(); ++iz) {
        off += grid.row(ix, iy)[iz] != whole.row(ix, iy)[iz];
        EXPECT_NEAR(grid.row(ix, iy)[iz], value(ix, iy, iz), 1e-14);
      }
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

struct Universe {
  Cosmology cosmology{CosmologyParameters{}, UnitSystem{}};
  PowerSpectrum power{{}, CosmologyParameters{}, UnitSystem{}};
};

CosmologicalIcParameters of_side(int n) { return {.seed = 42, .particles_per_side = n, .box_size = 40, .redshift = 9}; }

// Particles a side; 2 and 4 are fewer than the ranks.
class LagrangianOverRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sides, LagrangianOverRanks, testing::Values(2, 4, 8, 18));

TEST_P(LagrangianOverRanks, SharesAreTheSameBits) {
  const Universe u;
  const auto world = Communicator::world();
  for (const auto& [second_order, dealias] : {std::pair{false, false}, {true, false}, {true, true}}) {
    CosmologicalIcParameters p = of_side(GetParam());
    p.second_order = second_order;
    p.dealias = dealias;
    const Snapshot whole = make_cosmological_ic(p, u.cosmology, u.power);
    test::expect_shares_of(whole, make_cosmological_ic(p, u.cosmology, u.power, world), world);
  }
}

// With messages of any size, one number each among them.
TEST(LagrangianRanks, SmallMessagesChangeNothing) {
  const Universe u;
  const auto world = Communicator::world();
  for (const auto& [n, bytes] : std::initializer_list<std::pair<int, std::size_t>>{{4, 1}, {8, 700}, {18, 20000}}) {
    const CosmologicalIcParameters p = of_side(n);
    const Snapshot whole = make_cosmological_ic(p, u.cosmology, u.power);
    const PeriodicGrid density = make_linear_density({.seed = p.seed}, u.power, p.box_size, n, world, {bytes});
    test::expect_shares_of(whole, displace_lattice(density, p, u.cosmology), world);
  }
}

TEST(LagrangianRanks, Pancake) {
  const Universe u;
  const auto world = Communicator::world();
  for (const auto& wave : {std::array{1, 0, 0}, {0, -3, 0}, {2, 1, -3}, {-1, 2, 3}}) {
    const PancakeParameters p = {.particles_per_side = 12, .wave = wave};
    test::expect_shares_of(make_pancake(p, u.cosmology), make_pancake(p, u.cosmology, world), world);
  }
}

// Any part of the ranks makes the same.
TEST(LagrangianRanks, PartsOfTheRanks) {
  const Universe u;
  const auto world = Communicator::world();
  const auto part = world.split(world.rank() % 2, -world.rank());
  const CosmologicalIcParameters p = of_side(8);
  test::expect_shares_of(make_cosmological_ic(p, u.cosmology, u.power),
                         make_cosmological_ic(p, u.cosmology, u.power, part), part);
}

template <class Parameters>
void expect_same_bits(Snapshot (*make)(const Parameters&, const Communicator&), const Parameters& parameters) {
  const auto world = Communicator::world();
  test::expect_shares_of(make(parameters, Communicator::self()), make(parameters, world), world);
}

TEST(ModelsOverRanks, PlummerSphere) {
  for (const std::uint64_t particles : {1, 5, 1000, 1001}) {
    expect_same_bits(make_plummer, {.seed = 3, .particles = particles});
    expect_same_bits(make_plummer, {.seed = 4, .particles = particles, .mass = 7, .truncation_radius = 3});
  }
}

TEST(ModelsOverRanks, ColdSphere) {
  for (const std::uint64_t particles : {3, 1000}) {
    expect_same_bits(make_cold_sphere, {.seed = 5, .particles = particles});
    expect_same_bits(make_cold_sphere, {.seed = 5, .particles = particles, .virial_ratio = 0.5});
  }
}

TEST(ModelsOverRanks, KeplerDisk) {
  for (const std::uint64_t particles : {1, 777})
    expect_same_bits(make_kepler_disk, {.seed = 6, .particles = particles});
}

// More ranks than bodies, from three ranks on.
TEST(ModelsOverRanks, TwoBodies) {
  expect_same_bits(make_two_body, {.mass1 = 1.3, .mass2 = 0.2, .semi_major_axis = 0.7, .eccentricity = 0.6});
}

}  // namespace
}  // namespace maki
