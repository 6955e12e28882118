// Energies, momenta and counts over all particles are those of one rank; and what ranks tell rank 0.
#include "host/measure/totals.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "src/simulation/metrics.hpp"
#include "src/simulation/step_log.hpp"
#include "tests/host/domain/fields.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/messages.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using test::hash;

// One particle of the set, by its number. Masses over three decades; momenta and accelerations of either sign.
struct Item {
  float mass, phi, psi;
  std::array<float, 3> p, a, b;
};

float number(std::uint64_t id, std::uint64_t purpose) {
  return static_cast<float>(static_cast<double>(hash(id, purpose) >> 11) * 0x1p-53);
}

Item item(std::uint64_t id) {
  Item i;
  i.mass = std::pow(10.0f, 3 * number(id, 0));
  for (unsigned axis = 0; axis < 3; ++axis) {
    i.p[axis] = 600 * number(id, 1 + axis) - 300;
    i.a[axis] = 2e4f * number(id, 4 + axis) - 1e4f;
    i.b[axis] = 2e2f * number(id, 7 + axis) - 1e2f;
  }
  i.phi = -1e3f * number(id, 10);
  i.psi = 20 * number(id, 11) - 10;
  return i;
}

// Particles [begin, end) of the set on the device, in an order of their own.
struct Share {
  Particles particles;
  VectorArray near{"test.near"}, far{"test.far"};
  DeviceBuffer<float> phi{"test.phi"}, psi{"test.psi"};
};

void make_share(const Stream& stream, std::uint64_t begin, std::uint64_t end, Share& share) {
  const std::size_t n = end - begin;
  std::vector<SourceParticle> source(n);
  std::vector<float> phi(n), psi(n);
  std::vector<std::array<float, 3>> p(n), a(n), b(n);
  for (std::size_t k = 0; k < n; ++k) {
    const Item i = item(begin + (k * 7919) % n);  // a permutation where n is no multiple of it
    source[k] = {0, 0, 0, i.mass};
    phi[k] = i.phi, psi[k] = i.psi, p[k] = i.p, a[k] = i.a, b[k] = i.b;
  }
  share.particles.source.upload(stream, source);
  testing::upload_vectors(stream, p, share.particles.momentum);
  testing::upload_vectors(stream, a, share.near);
  testing::upload_vectors(stream, b, share.far);
  share.phi.upload(stream, phi);
  share.psi.upload(stream, psi);
  stream.synchronize();
}

// What ranks have found together, and what one rank with all particles finds.
class Totals : public ::testing::Test {
 protected:
  void make(std::uint64_t n) {
    const auto rank = static_cast<std::uint64_t>(ranks.rank()), size = static_cast<std::uint64_t>(ranks.size());
    make_share(stream, n * rank / size, n * (rank + 1) / size, share);
    make_share(stream, 0, n, whole);
  }
  const Stream& stream = test::test_stream();
  const Communicator ranks = Communicator::world();
  Share share, whole;
};

TEST_F(Totals, HaveTheBitsOfOneRank) {
  for (const std::uint64_t n : {20000u, 3u}) {  // of 3, some ranks have none
    make(n);
    EXPECT_EQ(sum_of(ranks, std::uint64_t{share.particles.size()}), n);
    const EnergyTotals energy = over_ranks(ranks, energy_sums(stream, share.particles, share.phi, &share.psi));
    const EnergySums one = energy_sums(stream, whole.particles, whole.phi, &whole.psi);
    EXPECT_EQ(energy.kinetic, one.kinetic.value());
    EXPECT_EQ(energy.potential, one.potential.value());
    EXPECT_EQ(energy.mass, one.mass.value());
    EXPECT_EQ(over_ranks(ranks, kinetic_sum(stream, share.particles)), energy.kinetic);
    const MomentumTotals momentum = over_ranks(ranks, momentum_sums(stream, share.particles, share.near, &share.far));
    const MomentumSums of_one = momentum_sums(stream, whole.particles, whole.near, &whole.far);
    for (unsigned axis = 0; axis < 3; ++axis) {
      EXPECT_EQ(momentum.momentum[axis], of_one.momentum[axis].value());
      EXPECT_EQ(momentum.force[axis], of_one.force[axis].value());
    }
    EXPECT_EQ(momentum.momentum_scale, of_one.momentum_scale.value());
    EXPECT_EQ(momentum.force_scale, of_one.force_scale.value());
  }
}

TEST_F(Totals, WhatSetsTheStepIsTheSameAsOnOneRank) {
  constexpr std::uint64_t n = 5000;
  make(n);
  const StepMeasures many = measures_of_ranks(ranks, stream, share.particles, share.near, &share.far, n);
  const StepMeasures one = step_measures(stream, whole.particles, whole.near, &whole.far);
  EXPECT_EQ(many.maxima, one.maxima);
  EXPECT_EQ(many.squares, one.squares);
}

TEST_F(Totals, NotANumberOfOneRankReachesAll) {
  StepMaxima mine;
  mine.acceleration = ranks.rank() == ranks.size() - 1 ? std::nan("") : 1;
  mine.reach = ranks.rank();
  const StepMaxima all = largest_of_ranks(ranks, mine);
  EXPECT_FALSE(std::isfinite(all.acceleration));
  EXPECT_EQ(all.reach, ranks.size() - 1);
}

// What ranks tell rank 0, and the text that comes of it.

RankRecord record_of_rank(int rank, int step) {
  const auto r = static_cast<std::uint64_t>(rank);
  RankRecord record;
  record.particles = 100 + r;
  record.memory_high_water = 1000 * (r + 1);
  record.gravity.interactions = 10 * (r + 1);
  record.gravity.longest_list = 7 + r;
  record.gravity.let_bytes = r;
  record.phases = {{"tree", 2.0 + rank, 20, 1}, {"tree/evaluate", 1.0 + rank, 10, 1}};
  if (rank > 0) record.phases.insert(record.phases.begin() + 1, {"tree/LET", 0.5, 5, 1});  // not everywhere
  if (step > 0) record.phases.push_back({"energy", 0.25 * step, 1, 1});                    // not from the start
  return record;
}

TEST(RankRecords, ArriveAtTheFirstRankAsTheyWere) {
  const Communicator ranks = Communicator::world();
  for (int step = 0; step < 3; ++step) {
    const std::vector<RankRecord> all = gather_records(ranks, record_of_rank(ranks.rank(), step));
    ASSERT_EQ(all.size(), ranks.rank() == 0 ? static_cast<std::size_t>(ranks.size()) : 0u);
    for (std::size_t r = 0; r < all.size(); ++r) {
      const RankRecord expected = record_of_rank(static_cast<int>(r), step);
      EXPECT_EQ(all[r].particles, expected.particles);
      EXPECT_EQ(all[r].memory_high_water, expected.memory_high_water);
      EXPECT_EQ(all[r].gravity.interactions, expected.gravity.interactions);
      EXPECT_EQ(all[r].phases.size(), expected.phases.size());
      for (const PhaseTime& phase : expected.phases) {
        EXPECT_EQ(phase_seconds(all[r], phase.path), phase.seconds) << phase.path;
        EXPECT_EQ(phase_total(all[r], phase.path), phase.total_seconds);
      }
    }
  }
}

TEST(RankRecords, AreToldAsSmallestMeanAndLargest) {
  std::vector<RankRecord> all;
  for (int r = 0; r < 3; ++r) all.push_back(record_of_rank(r, 1));
  EXPECT_EQ(phase_paths(all), (std::vector<std::string>{"tree", "tree/evaluate", "tree/LET", "energy"}));
  const GravityCounts counts = over_ranks(all);
  EXPECT_EQ(counts.interactions, 60u);
  EXPECT_EQ(counts.longest_list, 9u);
  EXPECT_EQ(counts.let_bytes, 3u);
  const Spread work = spread_of(all, [](const RankRecord& r) { return static_cast<double>(r.gravity.interactions); });
  EXPECT_EQ(work.min, 10);
  EXPECT_EQ(work.mean, 20);
  EXPECT_EQ(work.largest, 2);
  EXPECT_EQ(work.imbalance(), 1.5);

  StepMetrics metrics;
  metrics.time = 1;
  const std::string line = to_json(metrics, all);
  test::expect_contains(line, {"\"interactions\": 60", "\"memory_high_water\": 3000", "\"tree/LET\": 0.333333",
                               "\"interactions\": [10, 20, 30]", "\"interaction_imbalance\": 1.5",
                               "\"evaluate_imbalance\": 1.5", "\"largest_memory_rank\": 2", "\"let_bytes\": 3",
                               "\"tree\": [2, 3, 4]"});
  EXPECT_EQ(log_line(metrics, all).size(), log_columns(true, true).size());

  test::expect_contains(run_report(PhaseTimers(), all, 1), {"\n  evaluate ", "\n  LET ", "interactions", "(most)"});
}

}  // namespace
}  // namespace maki
