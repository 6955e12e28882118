#include "host/let/local_essential_tree.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "host/domain/multisection.hpp"
#include "kernels/force/force.hpp"
#include "tests/force_errors.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/on_device.hpp"

namespace maki {
namespace {

using testing::Vectors;

std::vector<SourceParticle> share_of(const std::vector<SourceParticle>& set, const std::vector<int>& owner, int rank,
                                     bool others) {
  std::vector<SourceParticle> share;
  for (std::size_t i = 0; i < set.size(); ++i)
    if ((owner[i] == rank) != others) share.push_back(set[i]);
  return share;
}

// The owner of each particle by multisection with equal weights.
std::vector<int> owners_by_multisection(const std::vector<SourceParticle>& set, int ranks) {
  std::vector<SamplePoint> points;
  for (const SourceParticle& p : set) points.push_back({p.x, p.y, p.z});
  const Domains domains = multisect(points, choose_factors(ranks));
  std::vector<int> owner;
  for (const SourceParticle& p : set) owner.push_back(static_cast<int>(domains.rank_of(p.x, p.y, p.z)));
  return owner;
}

// A set of particles cut among ranks, each with its tree, its groups and what it imports.
struct LetSet {
  const Communicator ranks = Communicator::world().split(0, Communicator::world().rank());
  std::vector<SourceParticle> mine, others;  // `mine` in the order on the device
  testing::TreeSet own;
  const Stream& stream = own.stream;
  WalkOptions walk;
  LocalEssentialTree let;

  LetSet(const std::vector<SourceParticle>& set, const std::vector<int>& owner, const WalkOptions& w, int min_level,
         const LetOptions& options = {})
      : mine(share_of(set, owner, ranks.rank(), false)), others(share_of(set, owner, ranks.rank(), true)),
        own(mine, 64, min_level), walk(w), let(ranks, options) {
    if (!mine.empty()) mine = own.particles.source.download(stream);
  }
  void rebuild() {
    let.rebuild(stream, own.tree, own.particles.source.data(), walk);
    let.progress();
    let.finish(stream);
  }
  void update() {
    let.update(stream, own.tree, own.particles.source.data());
    let.finish(stream);
  }
  // All of this rank's particles and the others' become f(particle), the tree is swept and the groups refitted.
  template <class F>
  void move(F f) {
    for (auto* set : {&mine, &others})
      for (SourceParticle& p : *set) f(p);
    own.move_to(mine);
  }
  // By local lists and lists over the forest.
  Vectors forces(const ForceLaw& law) {
    if (mine.empty()) return {};
    test::VectorsOnDevice acceleration(mine.size());
    testing::add_forces(law, walk, own, own.tree, own.particles.source.data(), false, acceleration);
    testing::add_forces(law, walk, own, let.forest(), let.particles().data(), true, acceleration);
    return testing::download(stream, acceleration);
  }
  // By all particles of all ranks.
  Vectors direct(const ForceLaw& law) {
    if (mine.empty()) return {};
    std::vector<SourceParticle> set = mine;
    set.insert(set.end(), others.begin(), others.end());
    const test::OnDevice sources(set);
    test::VectorsOnDevice acceleration(mine.size());
    direct_sum(stream, law,
               {sources.data(), static_cast<std::uint32_t>(set.size()), 0, static_cast<std::uint32_t>(mine.size())},
               {acceleration.view(), nullptr});
    return testing::download(stream, acceleration);
  }
};

// Of all ranks' particles; relative to |a|, or to its hundredth part of the rms where |a| is less.
testing::ForceErrors errors_of_all(const Communicator& ranks, const Vectors& found, const Vectors& exact) {
  const auto gather = [&](const Vectors& mine) {
    return joined(exchange_all(ranks, std::vector<Vectors>(static_cast<std::size_t>(ranks.size()), mine)));
  };
  return testing::force_errors(gather(found), gather(exact), 0.01);
}

int world_size() { return Communicator::world().size(); }

ForceLaw newton() { return make_force_law(Split::kNone, 0, 0, Softening::kPlummer, 1e-4); }

// A shift of all changes no decision, so that an update has to give what a rebuild gives, bit by bit; only sums of
// leaves, which are swept here, begin at another reference point.
TEST(LocalEssentialTree, AnUpdateGivesWhatARebuildWould) {
  const auto set = testing::clustered_set(4000, 27);
  LetSet s(set, owners_by_multisection(set, world_size()), {}, 0);
  s.rebuild();
  const LetCounts rebuilt = s.let.counts();
  s.move([](SourceParticle& p) { p.x += 12345678u, p.y -= 7654321u, p.z += 99u; });
  s.update();
  EXPECT_EQ(s.let.counts().cells_sent, rebuilt.cells_sent);
  EXPECT_EQ(s.let.counts().bytes_sent, rebuilt.bytes_sent - 4 * rebuilt.cells_sent);
  EXPECT_EQ(s.let.counts().messages_sent, rebuilt.messages_sent);
  Octree& forest = s.let.forest();
  if (forest.cells == 0) {
    s.rebuild();
    return;
  }
  const auto moments = forest.moments.download(s.stream);
  const auto x = forest.geometry.x.download(s.stream);
  const auto hx = forest.geometry.hx.download(s.stream), size = forest.geometry.size.download(s.stream);
  std::vector<SourceParticle> particles(s.let.particles().size()), again(particles.size());
  copy_to_host(s.stream, particles.data(), s.let.particles().data(), particles.size() * sizeof(SourceParticle));
  s.rebuild();
  ASSERT_EQ(forest.cells, moments.size());
  ASSERT_EQ(s.let.particles().size(), particles.size());
  copy_to_host(s.stream, again.data(), s.let.particles().data(), again.size() * sizeof(SourceParticle));
  for (std::size_t i = 0; i < again.size(); ++i) {
    ASSERT_EQ(again[i].x, particles[i].x);
    ASSERT_EQ(again[i].mass, particles[i].mass);
  }
  const auto moments_again = forest.moments.download(s.stream);
  const auto count = forest.count.download(s.stream);
  const auto x_again = forest.geometry.x.download(s.stream);
  const auto h = forest.geometry.hx.download(s.stream), size_again = forest.geometry.size.download(s.stream);
  for (std::uint32_t c = 1; c < forest.cells; ++c) {
    const CellMoments &a = moments[c], &b = moments_again[c];
    ASSERT_EQ(x[c], x_again[c]);
    ASSERT_EQ(hx[c], h[c]);
    ASSERT_EQ(size[c], size_again[c]);
    ASSERT_EQ(a.mass, b.mass);
    ASSERT_LE(std::abs(signed_difference(a.x, b.x)), count[c] < 0xfffffff0u ? 1 : 0);
    ASSERT_NEAR(a.qxx, b.qxx, a.mass * (1e-6 * size[c] * size[c] + 0x1p-64));
  }
}

TEST(LocalEssentialTree, CompressedForcesAreWithinTheErrorOfTheOpeningAngle) {
  const auto set = testing::plummer_set(4000, 33);
  const auto owner = owners_by_multisection(set, world_size());
  LetSet plain(set, owner, {}, 0), packed(set, owner, {}, 0, {.compress = true});
  plain.rebuild();
  packed.rebuild();
  packed.update();
  const auto exact = plain.direct(newton());
  const auto found = errors_of_all(plain.ranks, packed.forces(newton()), exact);
  const auto without = errors_of_all(plain.ranks, plain.forces(newton()), exact);
  EXPECT_LT(found.median, 1.1 * without.median);
  EXPECT_LT(found.p99, 1.1 * without.p99);
  EXPECT_LE(packed.let.counts().bytes_sent, 0.7 * static_cast<double>(plain.let.counts().bytes_sent));
  EXPECT_EQ(packed.let.counts().cells_sent, plain.let.counts().cells_sent);
}

TEST(LocalEssentialTree, RanksWithoutParticlesHaveNoPartInIt) {
  const auto set = testing::clustered_set(4000, 28);
  auto owner = owners_by_multisection(set, std::max(1, world_size() - 1));
  for (int& r : owner) r += r >= world_size() / 2 && world_size() > 1 ? 1 : 0;  // one in the middle is empty
  LetSet s(set, owner, {}, 0);
  s.rebuild();
  s.update();
  const auto partners = static_cast<std::uint64_t>(std::max(0, world_size() - 2));
  EXPECT_EQ(s.let.counts().messages_sent, s.mine.empty() ? 0 : partners);
  EXPECT_EQ(s.let.forest().cells == 0, s.mine.empty() || partners == 0);
  EXPECT_EQ(s.ranks.traffic().empty, 0u);
}

TEST(LocalEssentialTree, WhereOneRankHasAllNothingIsSent) {
  const auto set = testing::clustered_set(1000, 29);
  LetSet s(set, std::vector<int>(set.size(), world_size() - 1), {}, 0);
  s.rebuild();
  EXPECT_EQ(s.let.counts().messages_sent, 0u);
  EXPECT_EQ(s.let.counts().bytes_sent, 0u);
  EXPECT_EQ(s.let.forest().cells, 0u);
  EXPECT_EQ(s.let.particles().size(), 0u);
  EXPECT_EQ(s.let.counts().exchange_seconds, 0);
}

// Clumps far apart, one a rank.
std::vector<SourceParticle> clump_of_each_rank(std::vector<int>& owner) {
  std::vector<SourceParticle> set;
  for (int r = 0; r < world_size(); ++r) {
    const double place[3] = {0.3 + 0.4 * (r & 1), 0.3 + 0.4 * (r >> 1 & 1), 0.3 + 0.4 * (r >> 2 & 1)};
    for (auto p : testing::uniform_set(100, 30 + static_cast<unsigned>(r), 0.49, 0.51)) {
      p.x += testing::to_fixed(place[0] - 0.5);
      p.y += testing::to_fixed(place[1] - 0.5);
      p.z += testing::to_fixed(place[2] - 0.5);
      set.push_back(p);
      owner.push_back(r);
    }
  }
  return set;
}

TEST(LocalEssentialTree, FarRanksAreOneCellEach) {
  std::vector<int> owner;
  const auto set = clump_of_each_rank(owner);
  LetSet s(set, owner, {}, 0);
  s.rebuild();
  const auto others = static_cast<std::uint64_t>(world_size() - 1);
  EXPECT_EQ(s.let.counts().cells_received, others);
  EXPECT_EQ(s.let.counts().particles_received, 0u);
  EXPECT_EQ(s.let.counts().bytes_sent, 68 * others);
  EXPECT_EQ(s.let.forest().cells, others + (others > 0 ? 1 : 0));  // up to 8 under one node
  s.update();
  EXPECT_EQ(s.let.counts().bytes_sent, 64 * others);
}

TEST(LocalEssentialTree, BeyondTheCutoffNoMessageGoes) {
  std::vector<int> owner;
  const auto set = clump_of_each_rank(owner);
  LetSet s(set, owner, {.r_cut = 0.2f}, 0);
  s.rebuild();
  s.update();
  EXPECT_EQ(s.let.counts().messages_sent, 0u);
  EXPECT_EQ(s.let.forest().cells, 0u);
  EXPECT_EQ(s.ranks.traffic().empty, 0u);
}

TEST(LocalEssentialTree, CountsAreThoseOfTheMessages) {
  const auto set = testing::clustered_set(2000, 31);
  LetSet s(set, owners_by_multisection(set, world_size()), {}, 0);
  s.rebuild();
  const LetCounts& counts = s.let.counts();
  std::vector<std::uint64_t> sums{counts.cells_sent,         counts.cells_received, counts.particles_sent,
                                  counts.particles_received, counts.bytes_sent,     counts.bytes_received};
  s.ranks.sum(sums);
  for (std::size_t k = 0; k < sums.size(); k += 2) EXPECT_EQ(sums[k], sums[k + 1]);
  EXPECT_EQ(counts.messages_sent, static_cast<std::uint64_t>(world_size() - 1));
  EXPECT_GE(counts.exchange_seconds, counts.waited_seconds);
  EXPECT_EQ(s.let.particles().size(), counts.particles_received);
  EXPECT_EQ(s.ranks.traffic().messages, counts.messages_sent);
  EXPECT_EQ(s.ranks.traffic().empty, 0u);
}

TEST(LocalEssentialTree, IsNotBegunTwice) {
  const auto set = testing::clustered_set(500, 32);
  LetSet s(set, owners_by_multisection(set, world_size()), {}, 0);
  s.let.finish(s.stream);  // of nothing
  s.let.rebuild(s.stream, s.own.tree, s.own.particles.source.data(), s.walk);
  EXPECT_THROW(s.let.update(s.stream, s.own.tree, s.own.particles.source.data()), std::logic_error);
  s.let.finish(s.stream);
}

}  // namespace
}  // namespace maki
