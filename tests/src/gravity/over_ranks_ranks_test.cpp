// Gravity over ranks: forces no worse than on one rank, from any distribution of the particles to begin with.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/force_errors.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/src/gravity/shared_set.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using namespace testing;

GravityOptions isolated() {
  GravityOptions options = testing::isolated(0.5, true, 1e-4);
  options.deterministic = true;
  return options;
}

// Forces on one rank and over all ranks, and the exact ones at every `stride`-th particle.
struct Comparison {
  ForceErrors one, many;
  double potential_one = 0, potential_many = 0;  // rms error over rms
};

class GravityOverRanks : public ::testing::Test {
 protected:
  template <class Owner>
  Forces forces_of(const Set& set, const GravityOptions& options, const Communicator& over, const Owner& owner) {
    Particles particles;
    upload_share(stream, set, over, owner, particles);
    PhaseTimers timers;
    Gravity gravity(options, timers, over);
    gravity.evaluate(stream, particles, Ranges::kBoth, true);
    if (options.open_by_error) {
      gravity.reference_acceleration_is(kRms);
      gravity.evaluate(stream, particles, Ranges::kBoth, true);
      EXPECT_TRUE(gravity.counts().rebuilt);
    }
    counts = gravity.counts();
    return gather(stream, over, set, particles, gravity);
  }

  template <class Owner>
  Comparison compare(const Set& set, const GravityOptions& options, const Owner& owner, std::size_t stride) {
    const Forces one = forces_of(set, options, Communicator::self(), [](std::size_t) { return 0; });
    interactions_of_one = counts.interactions;
    const Forces many = forces_of(set, options, ranks, owner);
    const Forces exact = testing::exact_forces(set, options, stride);
    return {testing::force_errors(every(stride, one.acceleration), exact.acceleration, 0.1),
            testing::force_errors(every(stride, many.acceleration), exact.acceleration, 0.1),
            rms_error(every(stride, one.potential), exact.potential),
            rms_error(every(stride, many.potential), exact.potential)};
  }

  // The largest errors, of a few groups, are a matter of how cells happen to lie about them.
  void expect_no_worse(const Comparison& c) {
    EXPECT_LE(c.many.median, 1.05 * c.one.median);
    EXPECT_LE(c.many.rms, 1.2 * c.one.rms);
    EXPECT_LE(c.many.p99, 1.2 * c.one.p99);
    EXPECT_LE(c.potential_many, 1.2 * c.potential_one);
  }
  std::uint64_t all_interactions() { return sum_of(ranks, counts.interactions); }

  // Moves the particles `steps` times and evaluates them each time; how many trees were built. Leaves what the forces
  // of the last step (and, the largest rms, of any) differ by from those of a new tree on one rank.
  template <class Move>
  int follow(Set& set, const GravityOptions& options, int steps, const Move& move) {
    int rebuilds = 0;
    worst_rms = 0;
    const auto see = [&](Gravity& gravity, const Particles& particles) {
      rebuilds += gravity.counts().rebuilt ? 1 : 0;
      gravity.reference_acceleration_is(kRms);
      const Forces found = gather(stream, ranks, set, particles, gravity);
      const Forces fresh = forces_of(set, options, Communicator::self(), [](std::size_t) { return 0; });
      last = testing::force_errors(found.acceleration, fresh.acceleration, 0.1);
      worst_rms = std::max(worst_rms, last.rms);
    };
    testing::follow(stream, set, options, ranks, ranks, nullptr, dealt(ranks), steps, move, see);
    return rebuilds;
  }

  static constexpr double kRms = 20;  // acceleration of plummer_set(), roughly
  const Stream& stream = test::test_stream();
  const Communicator ranks = Communicator::world();
  GravityCounts counts;
  ForceErrors last;
  double worst_rms = 0;
  std::uint64_t interactions_of_one = 0;
};

TEST_F(GravityOverRanks, ForcesOfAnIsolatedSetAreNoWorse) {
  const Set set(testing::clustered_set(24000, 3));
  expect_no_worse(compare(set, isolated(), dealt(ranks), 24));
  // Borders cut groups and cells: of sets as small as this many, most of all where slabs are many.
  const bool power_of_two = (ranks.size() & (ranks.size() - 1)) == 0;
  EXPECT_LE(static_cast<double>(all_interactions()),
            (power_of_two ? 1.15 : 1.3) * static_cast<double>(interactions_of_one));
}

TEST_F(GravityOverRanks, ForcesByEstimatedErrorAreNoWorse) {
  const Set set(testing::plummer_set(24000, 3));
  GravityOptions options = isolated();
  options.open_by_error = true;
  const Comparison c = compare(set, options, dealt(ranks), 24);
  EXPECT_LE(c.many.median, 1.2 * c.one.median);
  EXPECT_LE(c.many.rms, 1.3 * c.one.rms);
  EXPECT_LE(c.many.p99, 1.3 * c.one.p99);
  EXPECT_LE(c.potential_many, 2 * c.potential_one);  // cells open by the error of forces
}

TEST_F(GravityOverRanks, ForcesOfAPeriodicSetAreNoWorse) {
  const Set set(testing::uniform_set(2000, 3));
  expect_no_worse(compare(set, periodic(), dealt(ranks), 20));
}

TEST_F(GravityOverRanks, AllParticlesMayStartOnOneRank) {
  const Set set(testing::plummer_set(16000, 5));
  expect_no_worse(compare(
      set, isolated(), [&](std::size_t) { return ranks.size() - 1; }, 16));
}

TEST_F(GravityOverRanks, RanksMayBeEmpty) {
  const Set few(testing::uniform_set(3, 8, 0.3, 0.7));  // fewer than ranks, mostly
  const Comparison c = compare(
      few, isolated(), [&](std::size_t) { return 0; }, 1);
  EXPECT_LE(c.many.max, 1e-6);
  const Set box(testing::uniform_set(5, 8));
  const Comparison p = compare(
      box, periodic(), [&](std::size_t) { return 0; }, 1);
  EXPECT_LE(p.many.rms, 1.05 * p.one.rms);
}

TEST_F(GravityOverRanks, ADirectSumTakesAllRanksParticles) {
  GravityOptions options = isolated();
  options.direct = true;
  const Set set(testing::plummer_set(300, 6));
  const Comparison c = compare(set, options, dealt(ranks), 1);
  EXPECT_LE(c.many.max, 2e-5);
}

// Lists that do not fit are made and used in batches, local and imported ones.
TEST_F(GravityOverRanks, ListsInBatches) {
  GravityOptions options = isolated();
  const Set set(testing::clustered_set(4000, 4));
  const auto owner = dealt(ranks);
  const Forces kept = forces_of(set, options, ranks, owner);
  const std::uint64_t interactions = counts.interactions;
  options.list_budget = 20000;
  const Forces batched = forces_of(set, options, ranks, owner);
  EXPECT_EQ(counts.interactions, interactions);
  EXPECT_EQ(batched.acceleration, kept.acceleration);
}

// Between two evaluations of the mesh its accelerations go where the particles go.
TEST_F(GravityOverRanks, LongRangeAccelerationsFollowTheirParticles) {
  Set set(testing::uniform_set(3000, 11));
  Particles particles;
  upload_share(stream, set, ranks, dealt(ranks), particles);
  PhaseTimers timers;
  Gravity gravity(periodic(), timers, ranks);
  gravity.evaluate(stream, particles, Ranges::kBoth, true);
  const auto of_mesh = [&] {
    const auto ids = particles.id.download(stream);
    const auto a = gravity.long_acceleration().download(stream);
    EXPECT_EQ(a.size(), ids.size());
    std::vector<double> by_id(3 * set.source.size(), 0.0);
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t axis = 0; axis < 3; ++axis) by_id[3 * ids[i] + axis] = a[i][axis];
    ranks.sum(by_id);
    return by_id;
  };
  const std::vector<double> before = of_mesh();
  auto moved = particles.source.download(stream);
  for (SourceParticle& p : moved) p.x += 0x40000000u;  // a quarter of the box: to other ranks, most of them
  particles.source.upload(stream, moved);
  gravity.request_rebuild();
  gravity.evaluate(stream, particles, Ranges::kShort, false);
  EXPECT_TRUE(gravity.counts().rebuilt);
  EXPECT_EQ(of_mesh(), before);
}

// Particles that move: lists, forests and domains over several steps, kept and made anew.
TEST_F(GravityOverRanks, ForcesStayRightWhileParticlesMove) {
  GravityOptions by_error = isolated();
  by_error.open_by_error = true;
  for (const GravityOptions& options : {isolated(), periodic(), by_error}) {
    Set set(options.periodic ? testing::uniform_set(3000, 9) : testing::plummer_set(3000, 9));
    const int rebuilds = follow(set, options, 12, [](int, std::size_t i, SourceParticle& p) {  // each its own way
      p.x += static_cast<std::uint32_t>(i * 2654435761u % 4000001) - 2000000u;
      p.y += static_cast<std::uint32_t>(i * 2246822519u % 4000001) - 2000000u;
    });
    EXPECT_LE(last.rms, 1.5e-3);
    EXPECT_GT(rebuilds, options.open_by_error ? 1 : 0);
    EXPECT_LT(rebuilds, 12);
  }
}

// Two dense clumps on either side of a border pass through each other: what one rank had of the other's as multipoles
// while it was far must not serve when it is near.
TEST_F(GravityOverRanks, ClumpsThatMeetAcrossABorder) {
  std::vector<SourceParticle> source = testing::uniform_set(2000, 4);
  for (std::size_t i = 0; i < 1000; ++i) {
    SourceParticle p = source[i];
    p.x = (p.x >> 12) + testing::to_fixed(i % 2 ? 0.49 : 0.51);
    p.y = (p.y >> 12) + testing::to_fixed(0.6);
    p.z = (p.z >> 12) + testing::to_fixed(0.6);
    source.push_back(p);
  }
  Set set(source);
  const auto move = [&](int, std::size_t i, SourceParticle& p) {
    if (i >= 2000) p.x += testing::to_fixed(i % 2 ? 0.002 : -0.002);
  };
  follow(set, periodic(), 10, move);
  EXPECT_LE(last.rms, 3e-3);
  EXPECT_LE(worst_rms, 3e-3);
}

}  // namespace
}  // namespace maki
