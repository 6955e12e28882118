// Samples, cuts and migration together: from an even start to balance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "host/domain/migrate.hpp"
#include "host/domain/sampling.hpp"
#include "kernels/particles/morton.hpp"
#include "tests/host/domain/sets_ranks.hpp"

namespace maki {
namespace {

class Balance : public testing::Test {
 protected:
  const Stream stream;
  const Communicator ranks = Communicator::world();
  const int rank = ranks.rank(), size = ranks.size();
  Particles particles;
  DeviceBuffer<std::uint32_t> cost{"test.cost"};

  void keep_own(const std::vector<SamplePoint>& set, const Domains& domains) {
    std::vector<SourceParticle> own;
    std::vector<std::uint64_t> ids;
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (domains.rank_of(set[i][0], set[i][1], set[i][2]) != static_cast<std::uint32_t>(rank)) continue;
      own.push_back({set[i][0], set[i][1], set[i][2], 1.0f});
      ids.push_back(i);
    }
    particles.resize(own.size());
    particles.source.upload(stream, own);
    particles.id.upload(stream, ids);
    particles.remainder.fill_zero(stream);
    particles.momentum.fill_zero(stream);
    stream.synchronize();
  }
  // Costs by id, over a factor of 30: what a particle costs does not depend on where it is computed.
  double take_costs() {
    std::vector<std::uint32_t> costs;
    double sum = 0;
    for (const std::uint64_t id : particles.id.download(stream)) {
      costs.push_back(static_cast<std::uint32_t>(100 * std::exp(3.4 * static_cast<double>(test::hash(id / 64, 1)) / 0x1p64)));
      sum += costs.back();
    }
    cost.upload(stream, costs);
    stream.synchronize();
    return sum;
  }
  double measured_imbalance() {
    std::vector<double> loads(static_cast<std::size_t>(size), 0.0);
    loads[static_cast<std::size_t>(rank)] = take_costs();
    ranks.sum(loads);
    return imbalance(loads);
  }
  // Five steps of an engine from even cuts; the imbalance before and after.
  std::pair<double, double> run(const std::vector<SamplePoint>& set) {
    Domains domains(choose_factors(size));
    keep_own(set, domains);
    MortonSorter sorter;
    double start = 0, end = 0;
    for (std::uint64_t step = 0; step < 5; ++step) {
      sorter.sort(stream, particles, nullptr);
      end = measured_imbalance();
      if (step == 0) start = end;
      const Samples samples = gather_samples(stream, ranks, particles, {.cost = cost.data(), .count = cost.size()}, step,
                                             {.per_rank = 200});  // of some 7500 at 8 ranks
      EXPECT_NEAR(samples.imbalance, end, 1e-9);
      domains = multisect(samples.points, {}, domains, Smoothing{});
      migrate(stream, ranks, domains, particles);
    }
    std::uint64_t count[1] = {particles.size()};
    ranks.sum(count);
    EXPECT_EQ(count[0], set.size());
    end = measured_imbalance();
    if (rank == 0) std::printf("ranks %d: max/mean %.3f, after five steps %.4f\n", size, start, end);
    return {start, end};
  }
};

TEST_F(Balance, ClumpsWithinFiveSteps) {
  const auto [start, end] = run(test::clump_set(60000, 60, 3));
  EXPECT_LE(end, 1.05);
  if (size >= 4) {
    EXPECT_GT(start, 1.2);
  }
}

TEST_F(Balance, APlummerSphereWithinFiveSteps) {
  const auto [start, end] = run(test::plummer_set(60000, {0.4, 0.45, 0.55}, 0.01, 5));
  EXPECT_LE(end, 1.05);
  if (size > 1) {
    EXPECT_GT(start, 1.5);
  }
}

// Rank 0 computes at half the speed.
TEST_F(Balance, TimesAreEvenedOutWhereTheyAreGiven) {
  Domains domains(choose_factors(size));
  keep_own(test::clump_set(20000, 40, 4), domains);
  MortonSorter sorter;
  double last = 0, own = 0;
  for (std::uint64_t step = 0; step < 8; ++step) {
    sorter.sort(stream, particles, nullptr);
    own = take_costs();
    const Costs costs{.cost = cost.data(), .count = cost.size(), .seconds = own * (rank == 0 ? 2e-6 : 1e-6)};
    const Samples samples = gather_samples(stream, ranks, particles, costs, step, {.per_rank = 500});
    last = samples.imbalance;
    domains = multisect(samples.points, {}, domains, Smoothing{});
    migrate(stream, ranks, domains, particles);
  }
  EXPECT_LE(last, 1.05);
  std::vector<double> loads(static_cast<std::size_t>(size), 0.0);
  loads[static_cast<std::size_t>(rank)] = take_costs();
  ranks.sum(loads);
  for (std::size_t r = 1; r < loads.size(); ++r) EXPECT_NEAR(loads[0] / loads[r], 0.5, 0.05);
}

TEST_F(Balance, SamplesAreAlikeOnAllRanksAndOfTheSet) {
  const auto set = test::clump_set(20000, 20, 7);
  keep_own(set, Domains(choose_factors(size)));
  take_costs();
  const Samples samples = gather_samples(stream, ranks, particles, {.cost = cost.data(), .count = cost.size()}, 3,
                                         {.per_rank = 100});
  EXPECT_EQ(samples.points.size(), static_cast<std::size_t>(100 * size));
  std::uint64_t hash = 0;
  for (const SamplePoint& p : samples.points) {
    EXPECT_TRUE(std::ranges::find(set, p) != set.end());
    for (const std::uint32_t c : p) hash = hash * 0x9e3779b97f4a7c15ull + c;
  }
  std::uint64_t low[1] = {hash}, high[1] = {~hash};
  ranks.max(low);
  ranks.max(high);
  EXPECT_EQ(low[0], hash);
  EXPECT_EQ(high[0], ~hash);
}

TEST_F(Balance, AllOnOneRankOrWithoutCostOrWithoutParticles) {
  const auto set = test::clump_set(5000, 10, 8);
  Domains first(choose_factors(size));
  if (rank == 0) keep_own(set, Domains());
  const Samples one = gather_samples(stream, ranks, particles, {}, 0);
  EXPECT_EQ(one.cost, set.size());
  EXPECT_DOUBLE_EQ(one.imbalance, size);
  EXPECT_EQ(one.points.size(), std::min<std::size_t>(2000 * static_cast<std::size_t>(size), set.size()));

  cost.resize(particles.size());
  cost.fill_zero(stream);
  const Samples free = gather_samples(stream, ranks, particles, {.cost = cost.data(), .count = cost.size()}, 0);
  EXPECT_EQ(free.points, one.points);

  migrate(stream, ranks, multisect(one.points, {}, choose_factors(size)), particles);
  EXPECT_LE(measured_imbalance(), 1.6);  // costs were not known

  particles.resize(0);
  const Samples none = gather_samples(stream, ranks, particles, {}, 0);
  EXPECT_TRUE(none.points.empty());
  EXPECT_EQ(multisect(none.points, {}, choose_factors(size)), first);
}

}  // namespace
}  // namespace maki
