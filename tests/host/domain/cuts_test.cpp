// Where cuts go from step to step, and to which coordinates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include "host/domain/multisection.hpp"
#include "tests/host/domain/domain_sets.hpp"

namespace maki {
namespace {

using namespace test;

TEST(Smoothing, GoesPartOfTheWay) {
  const Factors f{2, 2, 2};
  const Domains even(f);
  auto set = uniform_set(8000, 19);
  for (SamplePoint& p : set) p[0] = p[0] / 100 * 101;  // a little uneven
  const Domains whole = multisect(set, {}, f, 0);
  const Domains half = multisect(set, {}, even, {.fraction = 0.5, .jump_above = 100, .rounding = 0});
  const double target = whole.axis(0, 0)[1], old = even.axis(0, 0)[1];
  EXPECT_NEAR(half.axis(0, 0)[1], (target + old) / 2, 1.0);
  EXPECT_EQ(multisect(set, {}, even, {.fraction = 1, .rounding = 0}), whole);
  EXPECT_EQ(multisect(set, {}, even, {.fraction = 0, .jump_above = 100, .rounding = 0}), even);
}

TEST(Smoothing, GivesUpCutsThatAreFarFromBalance) {
  const auto set = clustered_set(8000, 20);
  const Factors f{2, 2, 2};
  EXPECT_GT(imbalance(weight_of_domains(Domains(f), set, {})), 1.1);
  EXPECT_EQ(multisect(set, {}, Domains(f), Smoothing{}), multisect(set, {}, f));
}

TEST(Smoothing, MovesNoFurtherThanTheLimit) {
  const auto set = clustered_set(8000, 21);
  const Factors f{5, 3, 2};
  Domains domains(f);
  const Smoothing smoothing{.max_move = 0.01};
  constexpr auto kMostMoved = static_cast<long long>(kSide / 100 + 1);
  for (int step = 0; step < 20; ++step) {
    const Domains next = multisect(set, {}, domains, smoothing);
    for (std::size_t i = 0; i < next.starts().size(); ++i)
      EXPECT_LE(std::llabs(std::int64_t{next.starts()[i]} - std::int64_t{domains.starts()[i]}), kMostMoved);
    expect_a_partition(next);
    domains = next;
  }
}

TEST(Smoothing, SettlesOnBalance) {
  const auto set = clustered_set(20000, 22);
  Domains domains({2, 2, 2});
  const Smoothing smoothing{.fraction = 0.5, .jump_above = 100, .rounding = 0};
  for (int step = 0; step < 40; ++step) domains = multisect(set, {}, domains, smoothing);
  EXPECT_LT(imbalance(weight_of_domains(domains, set, {})), 1.002);
}

// Weight below each inner cut of one axis of a parent.
std::vector<double> below_cuts(const std::vector<SamplePoint>& points, std::size_t axis,
                               std::span<const std::uint32_t> starts) {
  std::vector<double> below;
  for (const std::uint32_t start : starts.subspan(1))
    below.push_back(
        static_cast<double>(std::ranges::count_if(points, [&](const SamplePoint& p) { return p[axis] < start; })));
  return below;
}

TEST(Rounding, KeepsItsTolerance) {
  for (const auto& set : {uniform_set(20000, 24), clustered_set(20000, 25)})
    for (const int ranks : {2, 3, 4, 7, 8, 12, 30, 64})
      for (const double rounding : {0.01, kRounding, 0.1}) {
        SCOPED_TRACE(ranks);
        const Domains domains = multisect(set, {}, choose_factors(ranks), rounding);
        expect_a_partition(domains);
        EXPECT_LE(imbalance(weight_of_domains(domains, set, {})), std::exp(rounding) + 3.0 * ranks / 20000);
      }
  // Slabs: cuts may give away half of it each.
  const auto set = clustered_set(20000, 26);
  const Domains slabs = multisect(set, {}, {7, 1, 1}, 0.05);
  const auto below = below_cuts(set, 0, slabs.axis(0, 0));
  for (std::size_t k = 0; k < below.size(); ++k)
    EXPECT_NEAR(below[k], 20000.0 * static_cast<double>(k + 1) / 7, 0.025 * 20000 / 7 + 1);
}

// Tried against all multiples of powers of two in the window, over many windows.
TEST(Rounding, TakesTheRoundestCoordinateOfAWindowIfFarRounder) {
  int moved = 0, stayed = 0;
  for (unsigned seed = 27; seed < 57; ++seed) {
    auto set = clustered_set(2000, seed);
    const Factors f{3, 1, 1};
    const Domains exact = multisect(set, {}, f, 0), rounded = multisect(set, {}, f, 0.04);
    std::ranges::sort(set, {}, [](const SamplePoint& p) { return p[0]; });
    const auto below = below_cuts(set, 0, exact.axis(0, 0));
    for (std::size_t k = 1; k < 3; ++k) {
      constexpr std::size_t kMost = 13;  // 0.04 / 2 of 2000 / 3
      const auto middle = static_cast<std::size_t>(below[k - 1]);
      const std::uint64_t low = std::uint64_t{set[middle - kMost - 1][0]} + 1, high = set[middle + kMost][0];
      std::uint64_t best = low, size = 1;
      for (int bit = 0; bit < 32; ++bit)
        if (const std::uint64_t up = (low + (1ull << bit) - 1) >> bit << bit; up <= high) best = up, size = 1ull << bit;
      const bool worth = size >= 8 * (high - low);
      (worth ? moved : stayed) += 1;
      EXPECT_EQ(rounded.axis(0, 0)[k], worth ? best : exact.axis(0, 0)[k]) << seed;
    }
  }
  EXPECT_GT(moved, 3);
  EXPECT_GT(stayed, 3);
}

// A cut that is all but in the middle of a set goes there, in an isolated box and in a periodic one.
TEST(Rounding, TakesTheMiddleOfTheBoxWhereItIsNear) {
  for (const std::uint32_t shrink : {1u, 2u}) {
    auto set = uniform_set(30000, 30);
    for (SamplePoint& p : set)
      for (std::uint32_t& c : p) c = c / shrink + (shrink == 2 ? 1u << 30 : 0);
    EXPECT_EQ(multisect(set, {}, {2, 2, 2}, 0.1), Domains({2, 2, 2}));
    EXPECT_EQ(multisect(set, {}, {4, 1, 1}, 0.1).axis(0, 0)[2], 1u << 31);
  }
}

// Cuts that are smoothed come as near to balance as others and rest there.
TEST(Rounding, DoesNotHoldBackCutsThatAreSmoothed) {
  const auto set = clustered_set(20000, 31);
  for (const Factors f : {Factors{2, 2, 2}, Factors{7, 1, 1}, Factors{4, 3, 2}}) {
    Domains domains(f), before;
    for (int step = 0; step < 60; ++step) {
      before = domains;
      domains = multisect(set, {}, domains, {.jump_above = 100});
    }
    EXPECT_EQ(domains, before);
    EXPECT_LE(imbalance(weight_of_domains(domains, set, {})), std::exp(kRounding) + 3.0 * f.count() / 20000);
  }
}

TEST(Rounding, LeavesHeapsAndEmptyRanksAlone) {
  for (const SamplePoint spot : {SamplePoint{0, 0, 0}, SamplePoint{1, kLast - 1, 1u << 31}}) {
    std::vector<SamplePoint> set(1000, spot);
    const auto few = uniform_set(5, 32);
    set.insert(set.end(), few.begin(), few.end());
    Domains domains({3, 2, 2});
    for (const double max_move : {1.0, 0.1, 0.0}) {
      domains = multisect(set, {}, domains, {.max_move = max_move});
      expect_a_partition(domains);
    }
    EXPECT_GE(std::ranges::max(weight_of_domains(domains, set, {})), 1000.0);
  }
}

}  // namespace
}  // namespace maki
