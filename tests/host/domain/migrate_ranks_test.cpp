// Samples, cuts and migration: who moves, and from an even start to balance.
#include "host/domain/migrate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "host/domain/multisection.hpp"
#include "host/domain/rank_domains.hpp"
#include "host/domain/sampling.hpp"
#include "kernels/particles/particles.hpp"
#include "tests/host/domain/fields.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

constexpr std::uint64_t kParticles = 5000;

class Migrate : public ::testing::Test, public test::KnownParticles {
 protected:
  const Stream& stream = test::test_stream();
  // A communicator of its own, so that only what the test sends is counted.
  const Communicator ranks = Communicator::world().split(0, Communicator::world().rank());
  const int rank = ranks.rank(), size = ranks.size();
  Domains domains{choose_factors(size)};

  Migration move() { return migrate(stream, ranks, domains, particles, arrays()); }
  // None lost, none doubled, each at home and with its fields.
  void expect_all_at_home() {
    expect_fields_of_ids(stream);
    std::vector<std::uint64_t> seen(kParticles, 0);
    for (const std::uint64_t id : particles.id.download(stream)) {
      ASSERT_LT(id, kParticles);
      ++seen[id];
    }
    ranks.sum(seen);
    EXPECT_EQ(std::ranges::count(seen, 1u), static_cast<std::ptrdiff_t>(kParticles));
    for (const SourceParticle& p : particles.source.download(stream))
      ASSERT_EQ(domains.rank_of(p.x, p.y, p.z), static_cast<std::uint32_t>(rank));
  }
  std::vector<std::uint64_t> ids_of(auto owner) const {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t id = 0; id < kParticles; ++id)
      if (owner(id) == rank) ids.push_back(id);
    return ids;
  }
  int home(std::uint64_t id) const {
    const SourceParticle p = test::fields_of(id).source;
    return static_cast<int>(domains.rank_of(p.x, p.y, p.z));
  }
};

TEST_F(Migrate, BringsAllHomeFromOneRank) {
  make(stream, ids_of([](std::uint64_t) { return 0; }));
  const Migration moved = move();
  expect_all_at_home();
  if (rank > 0) {
    EXPECT_EQ(moved.received, particles.size());
    EXPECT_EQ(moved.messages, 0u);
  } else {
    EXPECT_EQ(moved.sent, kParticles - particles.size());
    EXPECT_EQ(moved.messages, static_cast<std::uint64_t>(size - 1));
    EXPECT_EQ(moved.bytes, moved.sent * 50);
  }
}

TEST_F(Migrate, SendsNothingWhereNothingMoves) {
  make(stream, ids_of([this](std::uint64_t id) { return home(id); }));
  const std::vector<std::uint64_t> before = particles.id.download(stream);
  const Communicator::Traffic traffic = ranks.traffic();
  const Migration moved = move();
  EXPECT_EQ(ranks.traffic().messages, traffic.messages);
  EXPECT_EQ(moved.sent + moved.received + moved.messages + moved.bytes, 0u);
  EXPECT_EQ(particles.id.download(stream), before);
  expect_all_at_home();
}

TEST_F(Migrate, ThoseWhoStayComeFirstInTheirOrderThenArrivalsByRank) {
  const auto start = [this](std::uint64_t id) { return static_cast<int>(test::hash(id, 21) % size); };
  make(stream, ids_of(start));
  const Migration moved = move();
  expect_all_at_home();
  const Communicator::Traffic traffic = ranks.traffic();
  EXPECT_EQ(traffic.messages, moved.messages);
  EXPECT_EQ(traffic.bytes, moved.bytes);
  EXPECT_EQ(traffic.empty, 0u);
  std::vector<std::uint64_t> expected;
  const auto append_from = [&](int from) {
    for (std::uint64_t id = 0; id < kParticles; ++id)
      if (start(id) == from && home(id) == rank) expected.push_back(id);
  };
  append_from(rank);
  for (int r = 0; r < size; ++r)
    if (r != rank) append_from(r);
  EXPECT_EQ(particles.id.download(stream), expected);
}

TEST_F(Migrate, RanksBecomeEmptyAndFillAgain) {
  make(stream, ids_of([this](std::uint64_t id) { return home(id); }));
  const Domains even = domains;
  // The first cell of each axis narrows to nothing but the last, and back.
  for (int axis = 0; axis < 3; ++axis) {
    const auto parents = static_cast<std::uint32_t>(axis == 0   ? 1
                                                    : axis == 1 ? even.factors().x
                                                                : even.factors().x * even.factors().y);
    for (std::uint32_t p = 0; p < parents; ++p) std::ranges::fill(domains.axis(axis, p), 0u);
  }
  move();
  expect_all_at_home();
  EXPECT_EQ(particles.size(), rank == size - 1 ? kParticles : 0u);
  domains = even;
  move();
  expect_all_at_home();
  EXPECT_GT(particles.size(), 0u);
}

TEST_F(Migrate, WithoutParticlesIsNoTrouble) {
  make(stream, {});
  const Migration moved = move();
  EXPECT_EQ(particles.size(), 0u);
  EXPECT_EQ(moved.messages, 0u);
}

TEST_F(Migrate, WrongArgumentsAreRefused) {
  make(stream, {1, 2, 3});
  extra[1].resize(2);
  EXPECT_THROW(move(), std::invalid_argument);
  domains = Domains({static_cast<std::uint32_t>(size + 1), 1, 1});
  EXPECT_THROW(migrate(stream, ranks, domains, particles), std::invalid_argument);
}

// Samples, cuts and migration together: from an even start to balance.

using Set = std::vector<SourceParticle>;

Set off_the_middle(Set set) {
  for (SourceParticle& p : set) p.x -= 0x1999999au, p.y -= 0x0ccccccdu, p.z += 0x0ccccccdu;  // 0.1, 0.05, 0.05 sides
  return set;
}

class Balance : public ::testing::Test {
 protected:
  const Stream& stream = test::test_stream();
  const Communicator ranks = Communicator::world();
  const int rank = ranks.rank(), size = ranks.size();
  Particles particles;
  DeviceBuffer<std::uint32_t> cost{"test.cost"};
  std::vector<std::uint32_t> cost_by_id;

  void keep_own(const Set& set, const Domains& domains) {
    const auto is_mine = [&](std::size_t i) {
      return domains.rank_of(set[i].x, set[i].y, set[i].z) == static_cast<std::uint32_t>(rank);
    };
    testing::upload_some_at_rest(stream, set, is_mine, particles);
    stream.synchronize();
  }
  // What a particle costs does not depend on where it is computed: its share of the interactions of its group in the
  // tree over the whole set, which every rank works out for itself.
  void weigh(Set set, const WalkOptions& options, int min_level) {
    for (std::size_t i = 0; i < set.size(); ++i)  // masses of nearly 1 that tell who is who
      set[i].mass = 1 + static_cast<float>(i) * 0x1p-20f;
    testing::TreeSet tree(set, 64, min_level, 16);
    InteractionLists lists;
    walk_tree(stream, tree.tree, options, tree.all_groups(), lists);
    DeviceBuffer<std::uint32_t> costs("test.costs", tree.group_count());
    group_costs(stream, tree.tree.count.data(), tree.view(lists), 1, costs.data());
    const auto cost_of_group = costs.download(stream);
    const auto groups = tree.groups.download(stream);
    const auto source = tree.particles.source.download(stream);
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
  double measured_imbalance() { return imbalance(gathered(ranks, take_costs())); }
  // Five steps of an engine from even cuts bring the imbalance to 1.05, from above `start_above` where there are
  // `least_ranks` or more.
  void expect_even_within_five_steps(const Set& set, const WalkOptions& options, int min_level, int least_ranks,
                                     double start_above) {
    weigh(set, options, min_level);
    Domains domains(choose_factors(size));
    keep_own(set, domains);
    MortonSorter sorter;
    double start = 0, end = 0;
    for (std::uint64_t step = 0; step < 5; ++step) {
      sorter.sort(stream, particles, nullptr);
      end = measured_imbalance();
      if (step == 0) start = end;
      const Costs costs{.cost = cost.data(), .count = cost.size()};
      const Samples samples = gather_samples(stream, ranks, particles, costs, step, 200);  // few
      EXPECT_NEAR(samples.imbalance, end, 1e-9);
      domains = multisect(samples.points, domains, Smoothing{});
      migrate(stream, ranks, domains, particles);
    }
    EXPECT_EQ(sum_of(ranks, std::uint64_t{particles.size()}), set.size());
    end = measured_imbalance();
    if (rank == 0) std::printf("ranks %d: max/mean %.3f, after five steps %.4f\n", size, start, end);
    EXPECT_LE(end, 1.05);
    if (size >= least_ranks) {
      EXPECT_GT(start, start_above);
    }
  }
};

TEST_F(Balance, ClumpsWithinFiveSteps) {
  expect_even_within_five_steps(off_the_middle(testing::clustered_set(40000, 3)), {.theta = 0.5f, .r_cut = 0.1f},
                                kPeriodicMinLevel, 4, 1.2);
}

TEST_F(Balance, APlummerSphereWithinFiveSteps) {
  expect_even_within_five_steps(off_the_middle(testing::plummer_set(40000, 5, 0.01)), {.theta = 0.5f}, 0, 2, 1.5);
}

// Rank 0 computes at half the speed.
TEST_F(Balance, TimesAreEvenedOutWhereTheyAreGiven) {
  Domains domains(choose_factors(size));
  const Set set = off_the_middle(testing::clustered_set(20000, 4));
  weigh(set, {.theta = 0.5f, .r_cut = 0.1f}, kPeriodicMinLevel);
  keep_own(set, domains);
  MortonSorter sorter;
  double last = 0, own = 0;
  for (std::uint64_t step = 0; step < 8; ++step) {
    sorter.sort(stream, particles, nullptr);
    own = take_costs();
    const Costs costs{.cost = cost.data(), .count = cost.size(), .seconds = own * (rank == 0 ? 2e-6 : 1e-6)};
    const Samples samples = gather_samples(stream, ranks, particles, costs, step, 500);
    last = samples.imbalance;
    domains = multisect(samples.points, domains, Smoothing{});
    migrate(stream, ranks, domains, particles);
  }
  EXPECT_LE(last, 1.05);
  const std::vector<double> loads = gathered(ranks, take_costs());
  for (std::size_t r = 1; r < loads.size(); ++r) EXPECT_NEAR(loads[0] / loads[r], 0.5, 0.05);
}

// All particles but those of one corner cost next to nothing: by equal work alone a rank has far more than the others.
TEST_F(Balance, NoRankHasMoreParticlesThanItHasMemoryFor) {
  const Set set = testing::random_set(40000, 9, 1);
  const auto most_over_mean = [&](double bound) {
    RankDomains domains(ranks, static_cast<std::uint64_t>(bound * static_cast<double>(set.size()) / size));
    keep_own(set, Domains(choose_factors(size)));
    for (int step = 0; step < 8; ++step) {
      std::vector<std::uint32_t> own;
      for (const SourceParticle& p : particles.source.download(stream))
        own.push_back(std::min({p.x, p.y, p.z}) >> 30 == 3 ? 100 : 1);
      cost.upload(stream, own);
      domains.cut(stream, particles, [&] { return Costs{.cost = cost.data(), .count = cost.size()}; });
      domains.move(stream, particles, nullptr);
    }
    return static_cast<double>(largest_of(ranks, std::uint64_t{particles.size()})) * size / 40000;
  };
  const double free = most_over_mean(0), bound = most_over_mean(1.5);
  EXPECT_LE(bound, 1.6);
  if (size >= 4) {
    EXPECT_GT(free, 2);
    EXPECT_GT(bound, 1.3);  // no more even than need be
  }
}

TEST_F(Balance, SamplesAreAlikeOnAllRanksAndOfTheSet) {
  const Set set = off_the_middle(testing::clustered_set(20000, 7));
  cost_by_id.resize(set.size());
  for (std::size_t id = 0; id < set.size(); ++id) cost_by_id[id] = static_cast<std::uint32_t>(test::hash(id, 1) % 1000);
  keep_own(set, Domains(choose_factors(size)));
  take_costs();
  const Costs costs{.cost = cost.data(), .count = cost.size()};
  const Samples samples = gather_samples(stream, ranks, particles, costs, 3, 100);
  EXPECT_EQ(samples.points.size(), static_cast<std::size_t>(100 * size));
  std::uint64_t hash = 0;
  for (const SamplePoint& p : samples.points) {
    EXPECT_TRUE(std::ranges::any_of(set, [&](const SourceParticle& q) { return p == SamplePoint{q.x, q.y, q.z}; }));
    for (const std::uint32_t c : p) hash = hash * 0x9e3779b97f4a7c15ull + c;
  }
  EXPECT_EQ(largest_of(ranks, hash), hash);
  EXPECT_EQ(largest_of(ranks, ~hash), ~hash);
}

TEST_F(Balance, AllOnOneRankOrWithoutCostOrWithoutParticles) {
  const Set set = off_the_middle(testing::clustered_set(5000, 8));
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

  migrate(stream, ranks, multisect(one.points, choose_factors(size), 0), particles);
  cost_by_id.assign(set.size(), 1);
  EXPECT_LE(measured_imbalance(), 1.01);  // all particles were samples, or nearly so

  particles.resize(0);
  const Samples none = gather_samples(stream, ranks, particles, {}, 0);
  EXPECT_TRUE(none.points.empty());
  EXPECT_EQ(multisect(none.points, choose_factors(size)), first);
}

}  // namespace
}  // namespace maki
