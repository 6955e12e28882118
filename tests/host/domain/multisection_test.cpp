// Domains, and where their cuts go from step to step, and to which coordinates.
#include "host/domain/multisection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace maki {
namespace {

constexpr std::uint64_t kSide = std::uint64_t{1} << 32;
constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();

std::vector<SamplePoint> uniform_set(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<SamplePoint> points(n);
  for (SamplePoint& p : points)
    for (std::uint32_t& c : p) c = random();
  return points;
}

// Clumps of log-normal masses and small sizes over the box.
std::vector<SamplePoint> clustered_set(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> richness(0, 1.5);
  std::normal_distribution<double> offset(0, 3e7);
  std::vector<double> mass(40);
  for (double& m : mass) m = richness(random);
  std::discrete_distribution<std::size_t> clump(mass.begin(), mass.end());
  const std::vector<SamplePoint> centres = uniform_set(mass.size(), seed + 1);
  std::vector<SamplePoint> points(n);
  for (SamplePoint& p : points) {
    const SamplePoint& centre = centres[clump(random)];
    for (std::size_t a = 0; a < 3; ++a) p[a] = centre[a] + static_cast<std::uint32_t>(std::lround(offset(random)));
  }
  return points;
}

// Half open: low <= position < high on each axis, high up to 2^32.
struct DomainBox {
  std::array<std::uint32_t, 3> low;
  std::array<std::uint64_t, 3> high;
};

DomainBox box_of(const Domains& domains, int rank) {
  const Factors f = domains.factors();
  const auto r = static_cast<std::uint32_t>(rank);
  const std::uint32_t column = r / f.z, slab = column / f.y;
  const std::uint32_t parent[3] = {0, slab, column};
  const std::uint32_t place[3] = {slab, column % f.y, r % f.z};
  DomainBox box;
  for (int a = 0; a < 3; ++a) {
    const auto i = static_cast<std::size_t>(a);
    const std::span<const std::uint32_t> starts = domains.axis(a, parent[i]);
    box.low[i] = starts[place[i]];
    box.high[i] = place[i] + 1 < starts.size() ? starts[place[i] + 1] : kSide;
  }
  return box;
}

std::uint32_t rank_of(const Domains& domains, const SamplePoint& p) { return domains.rank_of(p[0], p[1], p[2]); }

// Number of samples in each domain.
std::vector<double> load_of_domains(const Domains& domains, std::span<const SamplePoint> samples) {
  std::vector<double> loads(static_cast<std::size_t>(domains.count()));
  for (const SamplePoint& p : samples) loads[rank_of(domains, p)] += 1;
  return loads;
}

// By the boxes alone.
std::vector<int> owners(const Domains& domains, const SamplePoint& p) {
  std::vector<int> found;
  for (int r = 0; r < domains.count(); ++r) {
    const DomainBox box = box_of(domains, r);
    bool inside = true;
    for (std::size_t a = 0; a < 3; ++a) inside = inside && box.low[a] <= p[a] && p[a] < box.high[a];
    if (inside) found.push_back(r);
  }
  return found;
}

// Positions at all cuts, just below them, at the ends of the box, and anywhere.
std::vector<SamplePoint> places_to_check(const Domains& domains) {
  std::vector<SamplePoint> places = uniform_set(300, 9);
  std::mt19937 random(10);
  for (int r = 0; r < domains.count(); ++r) {
    const DomainBox box = box_of(domains, r);
    for (int k = 0; k < 8; ++k) {
      SamplePoint p;
      for (std::size_t a = 0; a < 3; ++a) {
        const std::uint32_t edge[4] = {box.low[a], box.low[a] - 1, static_cast<std::uint32_t>(box.high[a]),
                                       static_cast<std::uint32_t>(box.high[a] - 1)};
        p[a] = edge[random() % 4];
      }
      places.push_back(p);
    }
  }
  places.insert(places.end(), {{0, 0, 0}, {kLast, kLast, kLast}, {0, kLast, 0}});
  return places;
}

void expect_a_partition(const Domains& domains) {
  for (const SamplePoint& p : places_to_check(domains)) {
    const std::vector<int> found = owners(domains, p);
    ASSERT_EQ(found.size(), 1u) << p[0] << ' ' << p[1] << ' ' << p[2];
    EXPECT_EQ(static_cast<int>(rank_of(domains, p)), found[0]);
  }
  unsigned __int128 volume = 0;
  for (int r = 0; r < domains.count(); ++r) {
    const DomainBox box = box_of(domains, r);
    unsigned __int128 v = 1;
    for (std::size_t a = 0; a < 3; ++a) {
      ASSERT_LE(box.low[a], box.high[a]);
      v *= box.high[a] - box.low[a];
    }
    volume += v;
  }
  EXPECT_TRUE(volume == static_cast<unsigned __int128>(1) << 96);
}

TEST(Multisection, FactorsAreAsCubicAsTheNumberAllows) {
  EXPECT_EQ(choose_factors(1), (Factors{1, 1, 1}));
  EXPECT_EQ(choose_factors(2), (Factors{2, 1, 1}));
  EXPECT_EQ(choose_factors(7), (Factors{7, 1, 1}));
  EXPECT_EQ(choose_factors(8), (Factors{2, 2, 2}));
  EXPECT_EQ(choose_factors(12), (Factors{3, 2, 2}));
  EXPECT_EQ(choose_factors(64), (Factors{4, 4, 4}));
  EXPECT_EQ(choose_factors(36), (Factors{4, 3, 3}));
  EXPECT_EQ(choose_factors(2047 * 2), (Factors{89, 23, 2}));
  for (int n = 1; n <= 200; ++n) {
    const Factors f = choose_factors(n);
    EXPECT_EQ(f.count(), static_cast<std::uint32_t>(n));
    EXPECT_GE(f.x, f.y);
    EXPECT_GE(f.y, f.z);
  }
}

TEST(Multisection, EveryPositionHasOneOwnerForAnyNumberOfRanks) {
  const auto uniform = uniform_set(1000, 1), clustered = clustered_set(1000, 2), few = uniform_set(3, 3);
  for (int ranks = 1; ranks <= 64; ++ranks) {
    SCOPED_TRACE(ranks);
    const Factors f = choose_factors(ranks);
    expect_a_partition(Domains(f));
    expect_a_partition(multisect(uniform, f));
    expect_a_partition(multisect(clustered, f));
    expect_a_partition(multisect(few, f));
  }
}

TEST(Multisection, SamplesAreSharedOutExactly) {
  for (const auto& set : {uniform_set(20000, 4), clustered_set(20000, 5)})
    for (const int ranks : {2, 3, 7, 8, 12, 30, 64}) {
      SCOPED_TRACE(ranks);
      const auto loads = load_of_domains(multisect(set, choose_factors(ranks), 0), set);
      for (const double load : loads) EXPECT_NEAR(load, 20000.0 / ranks, 2.0);  // rounding, once an axis
    }
}

TEST(Multisection, DoesNotDependOnTheOrderOfSamples) {
  auto set = clustered_set(5000, 14);
  set.resize(10000, set[17]);  // and half of them in one spot
  const Domains before = multisect(set, {3, 3, 2});
  std::ranges::shuffle(set, std::mt19937(15));
  EXPECT_EQ(multisect(set, {3, 3, 2}), before);
}

TEST(Multisection, ParticlesInOneSpotHaveOneOwner) {
  for (const SamplePoint spot : {SamplePoint{0, 0, 0}, SamplePoint{kLast, kLast, kLast},
                                 SamplePoint{1u << 31, 5, kLast}, SamplePoint{0, kLast, 77}}) {
    const std::vector<SamplePoint> set(1000, spot);
    for (const int ranks : {1, 2, 7, 8, 64}) {
      const Domains domains = multisect(set, choose_factors(ranks));
      expect_a_partition(domains);
      const auto loads = load_of_domains(domains, set);
      EXPECT_EQ(std::ranges::count(loads, 1000.0), 1);
      EXPECT_EQ(std::ranges::count(loads, 0.0), ranks - 1);
    }
  }
}

TEST(Multisection, HeapsOfCoincidentPointsGoWhole) {
  std::vector<SamplePoint> set;
  for (std::uint32_t heap = 0; heap < 8; ++heap)
    set.insert(set.end(), 100, SamplePoint{(heap & 1) * 1000 + 7, (heap >> 1 & 1) * 1000, 5 - (heap >> 2)});
  const Domains domains = multisect(set, {2, 2, 2});
  expect_a_partition(domains);
  for (const double load : load_of_domains(domains, set)) EXPECT_EQ(load, 100);
  // A heap that outweighs the rest leaves ranks empty, and nothing is lost.
  set.insert(set.end(), 100000, set[0]);
  EXPECT_EQ(std::ranges::max(load_of_domains(multisect(set, {8, 1, 1}), set)), 100400);
}

TEST(Multisection, WithoutSamplesCutsAreEven) {
  const Factors f{3, 2, 2};
  EXPECT_EQ(multisect({}, f), Domains(f));
  EXPECT_EQ(box_of(Domains(f), 11).low[0], static_cast<std::uint32_t>(2 * kSide / 3));
  EXPECT_EQ(box_of(Domains(f), 11).high[2], kSide);
}

TEST(Domains, FollowADoublingOfTheBox) {
  const auto set = clustered_set(3000, 23);
  Domains domains = multisect(set, {3, 2, 2});
  const Domains before = domains;
  domains.double_box();
  expect_a_partition(domains);
  std::size_t strangers = 0;
  for (const SamplePoint& p : set) {
    SamplePoint q;
    for (std::size_t a = 0; a < 3; ++a) q[a] = static_cast<std::uint32_t>((std::uint64_t{p[a]} + kSide / 2) / 2);
    strangers += rank_of(before, p) != rank_of(domains, q);
  }
  EXPECT_LE(strangers, 3u);  // one unit beside a cut
}

TEST(Imbalance, IsTheLargestOverTheMean) {
  EXPECT_DOUBLE_EQ(imbalance(std::vector<double>{1, 2, 3}), 1.5);
  EXPECT_DOUBLE_EQ(imbalance(std::vector<double>{0, 0}), 1);
  EXPECT_DOUBLE_EQ(imbalance(std::vector<double>{}), 1);
}

// Where cuts go from step to step, and to which coordinates.

TEST(Smoothing, GoesPartOfTheWay) {
  const Factors f{2, 2, 2};
  const Domains even(f);
  auto set = uniform_set(8000, 19);
  for (SamplePoint& p : set) p[0] = p[0] / 100 * 101;  // a little uneven
  const Domains whole = multisect(set, f, 0);
  const Domains half = multisect(set, even, {.fraction = 0.5, .jump_above = 100, .rounding = 0});
  const double target = whole.axis(0, 0)[1], old = even.axis(0, 0)[1];
  EXPECT_NEAR(half.axis(0, 0)[1], (target + old) / 2, 1.0);
  EXPECT_EQ(multisect(set, even, {.fraction = 1, .rounding = 0}), whole);
  EXPECT_EQ(multisect(set, even, {.fraction = 0, .jump_above = 100, .rounding = 0}), even);
}

TEST(Smoothing, GivesUpCutsThatAreFarFromBalance) {
  const auto set = clustered_set(8000, 20);
  const Factors f{2, 2, 2};
  EXPECT_GT(imbalance(load_of_domains(Domains(f), set)), 1.1);
  EXPECT_EQ(multisect(set, Domains(f), Smoothing{}), multisect(set, f));
}

// Number of points below each inner cut of one axis of a parent.
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
        const Domains domains = multisect(set, choose_factors(ranks), rounding);
        expect_a_partition(domains);
        EXPECT_LE(imbalance(load_of_domains(domains, set)), std::exp(rounding) + 3.0 * ranks / 20000);
      }
  // Slabs: cuts may give away half of it each.
  const auto set = clustered_set(20000, 26);
  const Domains slabs = multisect(set, {7, 1, 1}, 0.05);
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
    const Domains exact = multisect(set, f, 0), rounded = multisect(set, f, 0.04);
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
    EXPECT_EQ(multisect(set, {2, 2, 2}, 0.1), Domains({2, 2, 2}));
    EXPECT_EQ(multisect(set, {4, 1, 1}, 0.1).axis(0, 0)[2], 1u << 31);
  }
}

// Cuts that are smoothed come as near to balance as others and rest there.
TEST(Rounding, DoesNotHoldBackCutsThatAreSmoothed) {
  const auto set = clustered_set(20000, 31);
  for (const Factors f : {Factors{2, 2, 2}, Factors{7, 1, 1}, Factors{4, 3, 2}}) {
    Domains domains(f), before;
    for (int step = 0; step < 60; ++step) {
      before = domains;
      domains = multisect(set, domains, {.jump_above = 100});
    }
    EXPECT_EQ(domains, before);
    EXPECT_LE(imbalance(load_of_domains(domains, set)), std::exp(kRounding) + 3.0 * f.count() / 20000);
  }
}

}  // namespace
}  // namespace maki
