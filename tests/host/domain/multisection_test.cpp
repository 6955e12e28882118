#include "host/domain/multisection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/host/domain/domain_sets.hpp"

namespace maki {
namespace {

using namespace test;

TEST(Multisection, FactorsAreAsCubicAsTheNumberAllows) {
  EXPECT_EQ(choose_factors(1), (Factors{1, 1, 1}));
  EXPECT_EQ(choose_factors(2), (Factors{2, 1, 1}));
  EXPECT_EQ(choose_factors(7), (Factors{7, 1, 1}));
  EXPECT_EQ(choose_factors(8), (Factors{2, 2, 2}));
  EXPECT_EQ(choose_factors(12), (Factors{3, 2, 2}));
  EXPECT_EQ(choose_factors(64), (Factors{4, 4, 4}));
  EXPECT_EQ(choose_factors(36), (Factors{4, 3, 3}));
  EXPECT_EQ(choose_factors(2047 * 2), (Factors{89, 23, 2}));
  EXPECT_THROW(choose_factors(0), std::invalid_argument);
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
    expect_a_partition(multisect(uniform, {}, f));
    expect_a_partition(multisect(clustered, {}, f));
    expect_a_partition(multisect(few, {}, f));
  }
}

TEST(Multisection, SamplesAreSharedOutExactly) {
  for (const auto& set : {uniform_set(20000, 4), clustered_set(20000, 5)})
    for (const int ranks : {2, 3, 7, 8, 12, 30, 64}) {
      SCOPED_TRACE(ranks);
      const auto weights = weight_of_domains(multisect(set, {}, choose_factors(ranks), 0), set, {});
      for (const double w : weights) EXPECT_NEAR(w, 20000.0 / ranks, 2.0);  // rounding, once an axis
    }
}

TEST(Multisection, WeightsAreSharedOut) {
  const auto set = clustered_set(20000, 6);
  std::mt19937 random(7);
  std::lognormal_distribution<float> cost(0, 1);
  std::vector<float> weights(set.size());
  for (float& w : weights) w = cost(random);
  for (std::size_t i = 0; i < weights.size(); i += 3) weights[i] = 0;
  const float largest = *std::ranges::max_element(weights);
  double sum = 0;
  for (const float w : weights) sum += w;
  for (const int ranks : {3, 8, 30})
    for (const double w : weight_of_domains(multisect(set, weights, choose_factors(ranks), 0), set, weights))
      EXPECT_NEAR(w, sum / ranks, 2 * largest);
}

// Cuts from samples, loads from the whole set: what is left is the noise of sampling, n^-1/2 of n samples a rank.
TEST(Multisection, TheWholeSetIsBalancedWithinTheErrorOfSampling) {
  for (const auto& set : {uniform_set(160000, 11), clustered_set(160000, 12)})
    for (const int ranks : {4, 7, 8, 27}) {
      std::vector<SamplePoint> samples;
      for (std::size_t i = 0; i < set.size(); i += 10) samples.push_back(set[i]);
      const auto loads = weight_of_domains(multisect(samples, {}, choose_factors(ranks), 0), set, {});
      const double mean = 160000.0 / ranks, noise = 1 / std::sqrt(16000.0 / ranks);
      for (const double load : loads) EXPECT_NEAR(load / mean, 1, 4 * noise) << ranks;
    }
}

TEST(Multisection, UniformCutsAreWhereTheyBelong) {
  const Domains domains = multisect(uniform_set(40000, 13), {}, {4, 2, 1});
  for (std::uint32_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(domains.axis(0, 0)[k] / 0x1p32, k / 4.0, 0.01);
    EXPECT_EQ(domains.axis(1, k)[0], 0u);
    EXPECT_NEAR(domains.axis(1, k)[1] / 0x1p32, 0.5, 0.02);
  }
}

TEST(Multisection, DoesNotDependOnTheOrderOfSamples) {
  auto set = clustered_set(5000, 14);
  set.resize(10000, set[17]);  // and half of them in one spot
  std::vector<float> weights(set.size());
  for (std::size_t i = 0; i < set.size(); ++i) weights[i] = 1.0f + 1e-3f * static_cast<float>(set[i][0] % 1000);
  const Domains before = multisect(set, weights, {3, 3, 2});
  std::vector<std::size_t> order(set.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(15));
  std::vector<SamplePoint> mixed;
  std::vector<float> mixed_weights;
  for (const std::size_t i : order) {
    mixed.push_back(set[i]);
    mixed_weights.push_back(weights[i]);
  }
  EXPECT_EQ(multisect(mixed, mixed_weights, {3, 3, 2}), before);
}

TEST(Multisection, ParticlesInOneSpotHaveOneOwner) {
  for (const SamplePoint spot : {SamplePoint{0, 0, 0}, SamplePoint{kLast, kLast, kLast},
                                 SamplePoint{1u << 31, 5, kLast}, SamplePoint{0, kLast, 77}}) {
    const std::vector<SamplePoint> set(1000, spot);
    for (const int ranks : {1, 2, 7, 8, 64}) {
      const Domains domains = multisect(set, {}, choose_factors(ranks));
      expect_a_partition(domains);
      const auto weights = weight_of_domains(domains, set, {});
      EXPECT_EQ(std::ranges::count(weights, 1000.0), 1);
      EXPECT_EQ(std::ranges::count(weights, 0.0), ranks - 1);
    }
  }
}

TEST(Multisection, HeapsOfCoincidentPointsGoWhole) {
  std::vector<SamplePoint> set;
  for (std::uint32_t heap = 0; heap < 8; ++heap)
    set.insert(set.end(), 100, SamplePoint{(heap & 1) * 1000 + 7, (heap >> 1 & 1) * 1000, 5 - (heap >> 2)});
  const Domains domains = multisect(set, {}, {2, 2, 2});
  expect_a_partition(domains);
  for (const double w : weight_of_domains(domains, set, {})) EXPECT_EQ(w, 100);
  // A heap that outweighs the rest leaves ranks empty, and nothing is lost.
  set.insert(set.end(), 100000, set[0]);
  const auto weights = weight_of_domains(multisect(set, {}, {8, 1, 1}), set, {});
  EXPECT_EQ(*std::ranges::max_element(weights), 100400);
}

TEST(Multisection, WithoutWeightCutsAreEven) {
  const Factors f{3, 2, 2};
  EXPECT_EQ(multisect({}, {}, f), Domains(f));
  const auto set = uniform_set(10, 16);
  EXPECT_EQ(multisect(set, std::vector<float>(10, 0.0f), f), Domains(f));
  EXPECT_EQ(box_of(Domains(f), 11).low[0], static_cast<std::uint32_t>(2 * kSide / 3));
  EXPECT_EQ(box_of(Domains(f), 11).high[2], kSide);
}

TEST(Multisection, FewSamplesLeaveSomeDomainsWithoutAny) {
  const auto set = uniform_set(3, 17);
  const auto weights = weight_of_domains(multisect(set, {}, {2, 2, 2}), set, {});
  double sum = 0;
  for (const double w : weights) sum += w;
  EXPECT_EQ(sum, 3);
}

TEST(Multisection, WrongWeightsAreRefused) {
  const auto set = uniform_set(2, 18);
  EXPECT_THROW(multisect(set, std::vector<float>{1}, {2, 1, 1}), std::invalid_argument);
  EXPECT_THROW(multisect(set, std::vector<float>{1, -1}, {2, 1, 1}), std::invalid_argument);
  EXPECT_THROW(multisect(set, std::vector<float>{1, NAN}, {2, 1, 1}), std::invalid_argument);
}

TEST(Domains, FollowADoublingOfTheBox) {
  const auto set = clustered_set(3000, 23);
  Domains domains = multisect(set, {}, {3, 2, 2});
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

}  // namespace
}  // namespace maki
