// What local essential trees of larger sets hold and cost; run as `mpirun -n 8 tests_ranks --gtest_filter='FullLet*'`.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>

#include "tests/host/let/expected_sizes.hpp"
#include "tests/host/let/let_set_ranks.hpp"
#include "tests/kernels/tree/tree_set.hpp"

namespace maki {
namespace {

using test::LetSet;

struct MeanAndMax {
  double mean, max;
};

MeanAndMax over_ranks(const Communicator& ranks, double mine) {
  std::vector<double> sum{mine}, max{mine};
  ranks.sum(sum);
  ranks.max(max);
  return {sum[0] / ranks.size(), max[0]};
}

void report(LetSet& s, const char* name, std::size_t particles) {
  const double ranks = s.ranks.size(), n = static_cast<double>(particles);
  s.rebuild();
  const LetCounts rebuilt = s.let.counts();
  s.update();
  const LetCounts updated = s.let.counts();
  const auto mean = [&](std::uint64_t mine) { return over_ranks(s.ranks, static_cast<double>(mine)); };
  const auto cells = mean(rebuilt.cells_received), imported = mean(rebuilt.particles_received);
  const auto entries = mean(rebuilt.cells_received + rebuilt.particles_received);
  const auto at_rebuild = mean(rebuilt.bytes_received), at_reuse = mean(updated.bytes_received);
  const auto messages = mean(updated.messages_sent);
  const auto interactions = mean(s.interactions());
  const double more = interactions.mean * ranks / static_cast<double>(s.interactions_of_one_rank());
  // Cells that a border cuts stand in lists twice: less the more particles a rank has, and where borders are faces of
  // large cells, for which slabs by other numbers than powers of two seldom have the chance.
  const bool halves = std::has_single_bit(static_cast<unsigned>(s.ranks.size()));
  EXPECT_LT(more, halves || s.walk.r_cut > 0 ? 1.1 : 1.5);
  EXPECT_EQ(s.ranks.traffic().empty, 0u);
  EXPECT_LE(messages.max, ranks - 1);
  if (s.ranks.rank() > 0) return;
  std::printf("%-28s %2.0f ranks: cells %6.0f particles %6.0f a rank (entries at most %6.0f; eq. 42: %6.0f), ", name,
              ranks, cells.mean, imported.mean, entries.max,
              fdps_let_entries(n / ranks, ranks, s.walk.theta, messages.mean));
  std::printf("bytes %8.0f reuse %8.0f (eq. 8: %8.0f), messages %.2f, interactions %.3f of one rank's\n",
              at_rebuild.mean, at_reuse.mean, sushi_let_bytes(n, ranks, s.walk.theta), messages.mean, more);
}

TEST(FullLet, EntriesAndBytesBesideThePapers) {
  const std::size_t n = 100000;
  const int ranks = Communicator::world().size();
  const auto measure = [&](const char* name, const std::vector<SourceParticle>& set, float r_cut) {
    WalkOptions walk;
    walk.r_cut = r_cut;
    for (const bool compress : {false, true}) {
      LetSet s(set, test::owners_by_multisection(set, ranks), walk, r_cut > 0 ? kPeriodicMinLevel : 0,
               {.compress = compress});
      report(s, compress ? "  compressed" : name, set.size());
    }
  };
  measure("uniform, no cutoff", testing::uniform_set(n, 41, 0.25, 0.75), 0);
  measure("Plummer, no cutoff", testing::plummer_set(n, 42), 0);
  measure("clumps, no cutoff", testing::clustered_set(n, 43), 0);
  measure("uniform, r_cut 0.07", testing::uniform_set(n, 44), 0.07f);
  measure("clumps, r_cut 0.07", testing::clustered_set(n, 45), 0.07f);
}

TEST(FullLet, ErrorOfCompression) {
  for (const float theta : {0.5f, 0.3f})
    for (const bool clumps : {false, true}) {
      const std::size_t n = 50000;
      const auto set = clumps ? testing::clustered_set(n, 46) : testing::plummer_set(n, 47);
      const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-4);
      WalkOptions walk;
      walk.theta = theta;
      const auto owner = test::owners_by_multisection(set, Communicator::world().size());
      test::Vectors exact;
      for (const bool compress : {false, true}) {
        LetSet s(set, owner, walk, 0, {.compress = compress});
        if (!compress) exact = s.direct(law);
        s.rebuild();
        const auto e = test::errors_of_all(s.ranks, s.forces(law), exact);
        if (s.ranks.rank() == 0)
          std::printf("theta %.1f %s %s: median %.2e, 99 %% %.2e, largest %.2e, rms %.2e\n", theta,
                      clumps ? "clumps " : "Plummer", compress ? "compressed" : "plain     ", e.median, e.p99, e.max,
                      e.rms);
        EXPECT_LT(e.p99, 0.01);
      }
    }
}

// What a step hides: local lists are evaluated in batches while messages are on their way.
TEST(FullLet, ExchangeIsHiddenBehindLocalEvaluation) {
  const auto set = testing::plummer_set(100000, 48);
  LetSet s(set, test::owners_by_multisection(set, Communicator::world().size()), {}, 0);
  const ForceLaw law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-4);
  for (const bool rebuild : {true, false, false}) {
    if (rebuild)
      s.let.rebuild(s.stream, s.tree, s.particles.source.data(), s.walk);
    else
      s.let.update(s.stream, s.tree, s.particles.source.data());
    s.local_forces_in_batches(law, 32);
    s.let.finish(s.stream);
    const LetCounts& c = s.let.counts();
    std::vector<double> sums{c.exchange_seconds, c.waited_seconds};
    s.ranks.sum(sums);
    if (s.ranks.rank() == 0)
      std::printf("%s: exchange %.2e s a rank, hidden %.1f %%\n", rebuild ? "rebuild" : "reuse  ",
                  sums[0] / s.ranks.size(), 100 * (1 - sums[1] / sums[0]));
  }
}

}  // namespace
}  // namespace maki
