#include "host/comm/exact_sum.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace maki {
namespace {

// Terms whose sum loses most of its digits.
double term(std::uint64_t i) { return std::sin(static_cast<double>(i)) * std::ldexp(1.0, static_cast<int>(i % 90)); }

TEST(ExactSumRanks, SameBitsForAnyNumberOfRanks) {
  const auto world = Communicator::world();
  const auto rank = static_cast<std::uint64_t>(world.rank()), size = static_cast<std::uint64_t>(world.size());
  constexpr std::uint64_t kTerms = 5000;
  std::array<ExactSum, 2> alone, shared;
  for (std::uint64_t i = 0; i < kTerms; ++i) {
    alone[0].add(term(i));
    alone[1].add(-term(i) * 0x1p-300);
    if (i % size != rank) continue;
    shared[0].add(term(i));
    shared[1].add(-term(i) * 0x1p-300);
  }
  ExactSum::over_ranks(world, shared);
  EXPECT_EQ(shared[0].value(), alone[0].value());
  EXPECT_EQ(shared[1].value(), alone[1].value());
  EXPECT_NE(alone[0].value(), 0);
}

TEST(ExactSumRanks, DoubleDoublesOfAllRanksAreRoundedOnce) {
  const auto world = Communicator::world();
  const auto rank = static_cast<std::uint64_t>(world.rank()), size = static_cast<std::uint64_t>(world.size());
  constexpr std::uint64_t kTerms = 5000;
  ExactSum truth;
  std::array<DoubleDouble, 2> sums;  // the second has its value on the last rank only
  for (std::uint64_t i = 0; i < kTerms; ++i) {
    const double value = std::sin(static_cast<double>(i)) + 0.3;
    truth.add(value);
    if (i % size == rank) sums[0] = sums[0] + value;
  }
  if (rank + 1 == size) sums[1] = {0.1, 0x1p-70};
  exact_sum(world, sums);
  EXPECT_EQ(sums[0].value(), truth.value());
  EXPECT_EQ(sums[1].hi, 0.1);
  EXPECT_EQ(sums[1].lo, 0x1p-70);
}

}  // namespace
}  // namespace maki
