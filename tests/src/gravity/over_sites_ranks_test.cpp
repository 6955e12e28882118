// Gravity over several sites: each some of the ranks of this job, joined by paths over the loopback. Forces no worse
// than at one site, and the mesh the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "src/gravity/site_agreement.hpp"
#include "tests/force_errors.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/sites/sites_of_ranks.hpp"
#include "tests/src/gravity/shared_set.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using testing::ForceErrors;
using testing::Forces;
using testing::Set;

class GravityOverSites : public ::testing::Test {
 protected:
  // One evaluation after another: `move` puts the set's particles elsewhere before each. Returns the last one's forces.
  template <class Move>
  Forces follow(Set set, const GravityOptions& options, int sites, int evaluations, const Move& move) {
    const SitesOfRanks here(world, sites);
    SiteAgreement steps(*here.sites);
    const sites::Slabs even(here.sites->count(), 0);
    Forces forces;
    const auto see = [&](const Gravity& gravity, const Particles& particles) {
      rebuilds += gravity.counts().rebuilt ? 1 : 0;
      forces = testing::gather(stream, world, set, particles, gravity);
      far = long_range_of(set, particles, gravity);
    };
    const auto owner = [&](std::size_t i) { return here.first_rank(even.site_of(set.source[i].x)); };
    testing::follow(stream, set, options, world, here.ranks, &steps, owner, evaluations, move, see);
    moved_set = std::make_unique<Set>(set.source);
    here.sites->close();
    return forces;
  }
  // Of all these ranks, or of one.
  Forces at_one_site(Set set, const GravityOptions& options, const Communicator& ranks) {
    Forces forces;
    const auto see = [&](const Gravity& gravity, const Particles& particles) {
      forces = testing::gather(stream, ranks, set, particles, gravity);
      if (ranks.size() == world.size()) far = long_range_of(set, particles, gravity);
    };
    testing::follow(stream, set, options, ranks, ranks, nullptr, testing::dealt(ranks), 1, stay, see);
    return forces;
  }
  std::vector<std::uint64_t> long_range_of(const Set& set, const Particles& particles, const Gravity& gravity) {
    const VectorArray& a = gravity.long_acceleration();
    return testing::gather_bits(stream, world, set, particles, {&a.x, &a.y, &a.z});
  }
  static ForceErrors errors(const Set& set, const Forces& forces, const GravityOptions& options, std::size_t stride) {
    return testing::force_errors(testing::every(stride, forces.acceleration),
                                 testing::exact_forces(set, options, stride).acceleration, 0.1);
  }
  static GravityOptions options() {
    GravityOptions options = testing::periodic();
    options.mesh.mass_bits = 12;
    return options;
  }
  static void stay(int, std::size_t, SourceParticle&) {}

  const Stream& stream = test::test_stream();
  const Communicator world = Communicator::world();
  std::vector<std::uint64_t> far;
  std::unique_ptr<Set> moved_set;
  int rebuilds = 0;
};

TEST_F(GravityOverSites, ForcesAreNoWorseAndTheMeshIsTheSame) {
  if (world.size() > 4) GTEST_SKIP() << "up to four sites are enough";
  const Set set(testing::clustered_set(6000, 4));
  at_one_site(set, options(), world);
  const std::vector<std::uint64_t> far_of_one = far;
  const ForceErrors expected = errors(set, at_one_site(set, options(), Communicator::self()), options(), 40);
  for (int sites = 2; sites <= std::min(3, world.size()); ++sites) {
    const Forces many = follow(set, options(), sites, 1, stay);
    const ForceErrors found = errors(set, many, options(), 40);
    EXPECT_LE(found.median, 1.05 * expected.median) << sites;
    EXPECT_LE(found.rms, 1.2 * expected.rms) << sites;
    EXPECT_LE(found.p99, 1.2 * expected.p99) << sites;
    EXPECT_EQ(far, far_of_one) << sites;
  }
}

// Kept lists, payload, migration and moving slabs: after many evaluations forces are still as good.
TEST_F(GravityOverSites, ParticlesMoveThroughSlabs) {
  if (world.size() > 4) GTEST_SKIP() << "up to four sites are enough";
  const Set set(testing::clustered_set(6000, 9));
  const auto drift = [](int e, std::size_t i, SourceParticle& p) {
    const auto random = static_cast<std::uint32_t>(i * 2654435761u);
    p.x += e > 0 ? (random >> 9) & 0x3fffff : 0;  // up to 1e-3 of the box at once, to the right
    p.y -= e > 0 ? (random >> 3) & 0x1fffff : 0;
  };
  for (int sites = 2; sites <= std::min(3, world.size()); ++sites) {
    rebuilds = 0;
    const Forces many = follow(set, options(), sites, 24, drift);
    EXPECT_GT(rebuilds, 1) << sites;
    EXPECT_LT(rebuilds, 24) << sites;
    const Forces one = at_one_site(*moved_set, options(), Communicator::self());
    const ForceErrors expected = errors(*moved_set, one, options(), 40);
    const ForceErrors found = errors(*moved_set, many, options(), 40);
    EXPECT_LE(found.median, 1.1 * expected.median) << sites;
    EXPECT_LE(found.rms, 1.6 * expected.rms) << sites;  // kept lists may be 1.5 times as wrong as new ones
  }
}

// No cutoff: every site's tree goes to all others, and particles come near to cells that were sent undivided.
TEST_F(GravityOverSites, AnIsolatedSetMovesThroughSlabs) {
  if (world.size() > 4) GTEST_SKIP() << "up to four sites are enough";
  GravityOptions isolated = testing::isolated(0.5, true, 1e-4);
  isolated.deterministic = true;
  const Set set(testing::clustered_set(4000, 10));
  const auto drift = [](int e, std::size_t i, SourceParticle& p) {
    const auto random = static_cast<std::uint32_t>(i * 2654435761u);
    const bool inner = p.x - 0x44000000u < 0x78000000u;
    if (e > 0 && inner) p.x += (random >> 8) % 0x180000u;  // up to 4e-4 of the box at once
  };
  for (int sites = 2; sites <= world.size(); ++sites) {
    rebuilds = 0;
    const Forces many = follow(set, isolated, sites, 12, drift);
    EXPECT_GT(rebuilds, 1) << sites;
    EXPECT_LT(rebuilds, 12) << sites;
    const Forces one = at_one_site(*moved_set, isolated, Communicator::self());
    const ForceErrors expected = errors(*moved_set, one, isolated, 4), found = errors(*moved_set, many, isolated, 4);
    EXPECT_LE(found.median, 1.2 * expected.median) << sites;
    EXPECT_LE(found.p99, 1.6 * expected.p99) << sites;
    EXPECT_LE(found.rms, 1.6 * expected.rms) << sites;
  }
}

}  // namespace
}  // namespace maki
