// Samples, cuts and migration together: from an even start to balance.
#include <gtest/gtest.h>

#include <algorithm>

#include "host/domain/migrate.hpp"
#include "host/domain/sampling.hpp"
#include "kernels/particles/particles.hpp"
#include "tests/host/domain/sets_ranks.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

class Balance : public ::testing::Test {
 protected:
  const Stream& stream = test::test_stream();
  const Communicator ranks = Communicator::world();
  const int rank = ranks.rank(), size = ranks.size();
  Particles particles;
  DeviceBuffer<std::uint32_t> cost{"test.cost"};
  std::vector<std::uint32_t> cost_by_id;

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
  // What a particle costs does not depend on where it is computed: its share of the interactions of its group in the
  // tree over the whole set, which every rank works out for itself.
  void weigh(const std::vector<SamplePoint>& set, const WalkOptions& options, int min_level) {
    std::vector<SourceParticle> source;
    for (const SamplePoint& p : set)  // masses of nearly 1 that tell who is who
      source.push_back({p[0], p[1], p[2], 1 + static_cast<float>(source.size()) * 0x1p-20f});
    testing::TreeSet tree(source, 64, min_level, 16);
    InteractionLists lists;
    walk_tree(stream, tree.tree, options, tree.all_groups(), lists);
    DeviceBuffer<std::uint32_t> costs("test.costs", tree.group_count());
    group_costs(stream, tree.tree.count.data(), tree.view(lists), 1, costs.data());
    const auto cost_of_group = costs.download(stream);
    const auto groups = tree.groups.download(stream);
    source = tree.particles.source.download(stream);
    cost_by_id.resize(set.size());
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (std::uint32_t i = groups[g].first; i < groups[g].first + groups[g].count; ++i)
        cost_by_id[static_cast<std::size_t>((source[i].mass - 1) * 0x1p20f)] = cost_of_group[g] / groups[g].count;
  }
  double take_costs() {
    std::vector<std::uint32_t> costs;
    double sum = 0;
    for (const std::uint64_t id : particles.id.download(stream)) sum += costs.emplace_back(cost_by_id[id]);
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
      const Costs costs{.cost = cost.data(), .count = cost.size()};
      const Samples samples = gather_samples(stream, ranks, particles, costs, step, {.per_rank = 200});  // few
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
  const auto set = test::clump_set(40000, 60, 3);
  weigh(set, {.theta = 0.5f, .r_cut = 0.1f}, kPeriodicMinLevel);
  const auto [start, end] = run(set);
  EXPECT_LE(end, 1.05);
  if (size >= 4) {
    EXPECT_GT(start, 1.2);
  }
}

TEST_F(Balance, APlummerSphereWithinFiveSteps) {
  const auto set = test::plummer_set(40000, {0.4, 0.45, 0.55}, 0.01, 5);
  weigh(set, {.theta = 0.5f}, 0);
  const auto [start, end] = run(set);
  EXPECT_LE(end, 1.05);
  if (size > 1) {
    EXPECT_GT(start, 1.5);
  }
}

// Rank 0 computes at half the speed.
TEST_F(Balance, TimesAreEvenedOutWhereTheyAreGiven) {
  Domains domains(choose_factors(size));
  const auto set = test::clump_set(20000, 40, 4);
  weigh(set, {.theta = 0.5f, .r_cut = 0.1f}, kPeriodicMinLevel);
  keep_own(set, domains);
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
  cost_by_id.resize(set.size());
  for (std::size_t id = 0; id < set.size(); ++id) cost_by_id[id] = static_cast<std::uint32_t>(test::hash(id, 1) % 1000);
  keep_own(set, Domains(choose_factors(size)));
  take_costs();
  const Costs costs{.cost = cost.data(), .count = cost.size()};
  const Samples samples = gather_samples(stream, ranks, particles, costs, 3, {.per_rank = 100});
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

  migrate(stream, ranks, multisect(one.points, {}, choose_factors(size), 0), particles);
  cost_by_id.assign(set.size(), 1);
  EXPECT_LE(measured_imbalance(), 1.01);  // all particles were samples, or nearly so

  particles.resize(0);
  const Samples none = gather_samples(stream, ranks, particles, {}, 0);
  EXPECT_TRUE(none.points.empty());
  EXPECT_EQ(multisect(none.points, {}, choose_factors(size)), first);
}

}  // namespace
}  // namespace maki
