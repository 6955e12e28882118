// One site of all ranks beside one of a single rank, which the first rank drives, too.
#include "wan/sites/site_trees.hpp"

#include <gtest/gtest.h>

#include "tests/host/domain/fields.hpp"
#include "tests/sites/tree_sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {
namespace {

using testing::TreeSet, testing::TreeSite;

const std::vector<std::string> kNames{"here", "far"};
const Slabs kSlabs(std::vector<std::uint32_t>{0, 0x60000000u});

// Its two ends; null but on the first rank.
struct Ends {
  const Communicator world = Communicator::world();
  std::unique_ptr<Sites> here, far;

  explicit Ends(int count = 2) {
    auto rings = world.rank() == 0 ? make_memory_rings(count) : std::vector<std::unique_ptr<Ring>>(2);
    std::vector<std::string> names = kNames;
    for (int i = 2; i < count; ++i) names.push_back("beyond");
    here = std::make_unique<Sites>(std::move(rings[0]), names, world);
    if (world.rank() == 0) far = std::make_unique<Sites>(std::move(rings[1]), names, Communicator::self());
  }
};

// What a site's rank has imported acts as the whole trees it was cut from.
void expect_as_whole(TreeSite& side, const WalkOptions& walk, const std::vector<std::vector<SourceParticle>>& whole) {
  if (side.mine.empty()) return;
  const ForceLaw law = make_force_law(Split::kPolynomial, 5, 0.1, Softening::kPlummer, 1e-3);
  const Stream& stream = side.set.stream;
  test::VectorsOnDevice imported(side.mine.size()), exact(side.mine.size());
  for (VectorArray* sum : {&imported, &exact}) sum->fill_zero(stream);
  testing::add_forces(law, walk, side.set, side.trees->forest(), side.trees->particles().data(), true, imported);
  for (const auto& set : whole) {
    TreeSet tree(set, 64, kPeriodicMinLevel);
    testing::add_forces(law, walk, side.set, tree.tree, tree.particles.source.data(), true, exact);
  }
  using testing::download;
  EXPECT_LT(maki::testing::force_errors(download(stream, imported), download(stream, exact), 0.01).max, 1e-5);
}

// Particle k of this site is on rank k mod `used` of it; the others have none.
void exchange(const LetOptions& options, int used) {
  Ends ends;
  const WalkOptions walk{.r_cut = 0.1f};
  std::vector<std::vector<SourceParticle>> of_rank(static_cast<std::size_t>(ends.world.size()));
  std::vector<SourceParticle> beyond;
  std::size_t k = 0;
  for (const SourceParticle& p : maki::testing::uniform_set(2000, 50)) {
    if (kSlabs.site_of(p.x) == 1)
      beyond.push_back(p);
    else
      of_rank[k++ % static_cast<std::size_t>(used)].push_back(p);
  }
  std::vector<TreeSite*> sides;  // of this rank
  TreeSite here(std::move(ends.here), of_rank[static_cast<std::size_t>(ends.world.rank())], kPeriodicMinLevel, options);
  std::unique_ptr<TreeSite> far;
  if (ends.far) {
    far = std::make_unique<TreeSite>(std::move(ends.far), beyond, kPeriodicMinLevel, options);
    sides.push_back(far.get());
  }
  sides.push_back(&here);
  const Stream& stream = test::test_stream();
  for (std::uint64_t number = 1; number <= 3; ++number) {
    for (TreeSite* side : sides) {
      if (number == 1)
        side->trees->rebuild(stream, side->set.tree, side->particles(), walk, {kSlabs, 0.001f}, number);
      else
        side->trees->update(stream, side->set.tree, side->particles(), number);
    }
    for (TreeSite* side : sides) side->trees->finish(stream);
  }
  EXPECT_GT(here.trees->particles().size(), 0u);
  if (far) {
    EXPECT_GT(far->trees->particles().size(), 0u);
  }
  if (options.compress) return;
  expect_as_whole(here, walk, {beyond});
  if (far) expect_as_whole(*far, walk, of_rank);
}

TEST(SiteTreesOfRanks, ActAsTheWholeTrees) { exchange({}, Communicator::world().size()); }
TEST(SiteTreesOfRanks, RanksMayBeEmpty) { exchange({}, 1); }
TEST(SiteTreesOfRanks, Compressed) { exchange({.compress = true}, Communicator::world().size()); }

struct Movers : test::KnownParticles {
  std::unique_ptr<SiteMigration> migration;
};

TEST(SiteMigrationOfRanks, ArrivalsStandBySiteRankAndTheirOrder) {
  Ends ends;
  const Stream& stream = test::test_stream();
  const int size = ends.world.size(), rank = ends.world.rank();
  const auto home = [](std::uint64_t id) { return kSlabs.site_of(test::fields_of(id).source.x); };
  // At first on rank 0 ... size - 1 of this site, or (size) at the other.
  const auto start = [&](std::uint64_t id) {
    return static_cast<int>(test::hash(id, 30) % (static_cast<unsigned>(size) + 1));
  };
  const auto ids_of = [&](int place, int owner) {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t id = 0; id < 3000; ++id)
      if (start(id) == place && (owner < 0 || home(id) == owner)) ids.push_back(id);
    return ids;
  };
  Movers here, far;
  here.make(stream, ids_of(rank, -1));
  here.migration = std::make_unique<SiteMigration>(*ends.here);
  if (ends.far) {
    far.make(stream, ids_of(size, -1));
    far.migration = std::make_unique<SiteMigration>(*ends.far);
    far.migration->begin(stream, kSlabs, far.particles, far.arrays(), 1);
  }
  here.migration->begin(stream, kSlabs, here.particles, here.arrays(), 1);
  here.migration->finish(stream, here.particles, here.arrays(), 1);
  here.expect_fields_of_ids(stream);
  std::vector<std::uint64_t> expected = ids_of(rank, 0);
  const auto append = [&](const std::vector<std::uint64_t>& ids) {
    expected.insert(expected.end(), ids.begin(), ids.end());
  };
  if (rank == 0) append(ids_of(size, 0));
  EXPECT_EQ(here.particles.id.download(stream), expected);
  if (!ends.far) return;
  far.migration->finish(stream, far.particles, far.arrays(), 1);
  far.expect_fields_of_ids(stream);
  expected = ids_of(size, 1);
  for (int r = 0; r < size; ++r) append(ids_of(r, 1));
  EXPECT_EQ(far.particles.id.download(stream), expected);
}

TEST(SiteMigrationOfRanks, AllLearnOfAParticleThatHasPassedASlab) {
  Ends ends(4);
  const Stream& stream = test::test_stream();
  const Slabs quarters(std::vector<std::uint32_t>{0, 0x40000000u, 0x80000000u, 0xc0000000u});
  std::vector<std::uint64_t> ids;
  if (ends.world.rank() == ends.world.size() - 1)
    for (std::uint64_t id = 0; id < 20; ++id) ids.push_back(id);
  test::KnownParticles movers;
  movers.make(stream, ids);
  SiteMigration migration(*ends.here);
  EXPECT_THROW(migration.begin(stream, quarters, movers.particles, movers.arrays(), 1), Error);
}

}  // namespace
}  // namespace maki::sites
