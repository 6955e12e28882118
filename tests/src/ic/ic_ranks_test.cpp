#include "src/ic/lagrangian.hpp"

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

struct Universe {
  Cosmology cosmology{CosmologyParameters{}, UnitSystem{}};
  PowerSpectrum power{{}, CosmologyParameters{}, UnitSystem{}};
};

CosmologicalIcParameters of_side(int n) { return {.seed = 42, .particles_per_side = n, .box_size = 40, .redshift = 9}; }

class LagrangianRanks : public test::ManyRanks {
 protected:
  const Universe u;
};

// Particles a side; 2 and 4 are fewer than the ranks.
class LagrangianOverRanks : public LagrangianRanks, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Sides, LagrangianOverRanks, testing::Values(2, 4, 8, 18));

TEST_P(LagrangianOverRanks, SharesAreTheSameBits) {
  for (const auto& [second_order, dealias] : {std::pair{false, false}, {true, false}, {true, true}}) {
    CosmologicalIcParameters p = of_side(GetParam());
    p.second_order = second_order;
    p.dealias = dealias;
    const Snapshot whole = make_cosmological_ic(p, u.cosmology, u.power);
    test::expect_shares_of(whole, make_cosmological_ic(p, u.cosmology, u.power, world), world);
  }
}

// With messages of any size, one number each among them.
TEST_F(LagrangianRanks, SmallMessagesChangeNothing) {
  for (const auto& [n, bytes] : std::initializer_list<std::pair<int, std::size_t>>{{4, 1}, {8, 700}, {18, 20000}}) {
    const CosmologicalIcParameters p = of_side(n);
    const Snapshot whole = make_cosmological_ic(p, u.cosmology, u.power);
    const PeriodicGrid density = make_linear_density({.seed = p.seed}, u.power, p.box_size, n, world, bytes);
    test::expect_shares_of(whole, displace_lattice(density, p, u.cosmology), world);
  }
}

TEST_F(LagrangianRanks, Pancake) {
  for (const auto& wave : {std::array{1, 0, 0}, {0, -3, 0}, {2, 1, -3}, {-1, 2, 3}}) {
    const PancakeParameters p = {.particles_per_side = 12, .wave = wave};
    test::expect_shares_of(make_pancake(p, u.cosmology), make_pancake(p, u.cosmology, world), world);
  }
}

// Any part of the ranks makes the same.
TEST_F(LagrangianRanks, PartsOfTheRanks) {
  const auto part = world.split(world.rank() % 2, -world.rank());
  const CosmologicalIcParameters p = of_side(8);
  test::expect_shares_of(make_cosmological_ic(p, u.cosmology, u.power),
                         make_cosmological_ic(p, u.cosmology, u.power, part), part);
}

}  // namespace
}  // namespace maki
