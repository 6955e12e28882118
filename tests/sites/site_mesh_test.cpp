#include "wan/sites/site_mesh.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/mesh/assign.hpp"
#include "tests/kernels/mesh/mesh_sets.hpp"
#include "tests/sites/replayed_sites.hpp"

namespace maki::sites {
namespace {

using Set = std::vector<SourceParticle>;
using maki::test::counts_of, maki::test::OnDevice, maki::test::test_stream, maki::testing::to_fixed;
using Counts = std::array<std::vector<std::uint64_t>, 2>;

enum class Kind { kGrid, kClustered, kFew };

Set make_set(Kind kind, bool equal_masses, std::size_t side = 20) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> even;
  std::lognormal_distribution<float> mass(0.0f, 0.5f);
  Set set;
  const auto add = [&](double x, double y, double z) {
    set.push_back({to_fixed(x), to_fixed(y), to_fixed(z), equal_masses ? 0.7f : mass(random)});
  };
  if (kind == Kind::kGrid)
    for (std::size_t i = 0; i < side * side * side; ++i)
      add((i % side + 0.1 * normal(random)) / side, (i / side % side + 0.1 * normal(random)) / side,
          (i / side / side + 0.1 * normal(random)) / side);
  if (kind == Kind::kClustered)
    for (int clump = 0; clump < 8; ++clump) {
      const double x = even(random), y = even(random), z = even(random), r = std::pow(0.5, clump) * 0.2;
      for (int i = 0; i < 800; ++i) add(x + r * normal(random), y + r * normal(random), z + r * normal(random));
    }
  if (kind == Kind::kFew)
    for (int i = 0; i < 5; ++i) add(even(random), even(random), even(random));
  return set;
}

// All sites of a ring, each of one rank, driven by this thread: all give before any takes.
struct Ring {
  std::vector<std::unique_ptr<Sites>> sites;
  std::vector<std::unique_ptr<SiteMesh>> meshes;
  Slabs slabs;

  explicit Ring(int count, double stray = 0.004) : sites(maki::test::sites_in_memory(count)), slabs(count, 0.01) {
    for (const auto& site : sites) meshes.emplace_back(std::make_unique<SiteMesh>(*site))->set_slabs(slabs, stray);
  }
  // Some particles stray a little beyond their site's slab.
  std::vector<Set> share(const Set& set) const {
    std::vector<Set> shares(sites.size());
    std::size_t i = 0;
    for (const SourceParticle& p : set) {
      const std::uint32_t seen = p.x + (++i % 3 == 0 ? to_fixed(0.003) : 0);
      shares[static_cast<std::size_t>(slabs.site_of(seen))].push_back(p);
    }
    return shares;
  }
};

std::uint64_t* data(std::vector<std::uint64_t>& values) { return values.empty() ? nullptr : values.data(); }

MassUnit unit_of(const Set& set, Assignment cloud, int m, int mass_bits) {
  const OnDevice source(set);
  return choose_mass_unit(test_stream(), cloud, m, source.data(), source.size(), mass_bits);
}

// What each site ends with.
std::vector<Counts> exchange(Ring& ring, const Set& set, const MassUnit& unit, Assignment cloud, int m,
                             int meshes = 2) {
  std::vector<Counts> counts;
  for (const Set& share : ring.share(set)) counts.push_back(counts_of(share, unit, cloud, MeshBox::whole(m), meshes));
  for (std::size_t i = 0; i < counts.size(); ++i)
    ring.meshes[i]->start_sum(MeshBox::whole(m), unit, meshes, data(counts[i][0]), data(counts[i][1]));
  for (std::size_t i = 0; i < counts.size(); ++i)
    ring.meshes[i]->finish_sum(MeshBox::whole(m), unit, meshes, data(counts[i][0]), data(counts[i][1]));
  return counts;
}

Counts rounded(Counts counts, const MassUnit& unit) {
  for (auto& mesh : counts)
    for (std::uint64_t& c : mesh) c = unit.rounded(c);
  return counts;
}

TEST(SiteMesh, CountsAreThoseOfOneSite) {
  const int m = 24;
  for (int sites : {1, 2, 3})
    for (Kind kind : {Kind::kGrid, Kind::kClustered, Kind::kFew})
      for (bool equal : {true, false})
        for (Assignment cloud : {Assignment::kCic, Assignment::kTsc, Assignment::kPcs})
          for (int setting : {1, 2, 3}) {
            if (setting < 3 && (sites == 1 || !equal)) continue;
            const int meshes = setting & 1 ? 2 : 1;
            SCOPED_TRACE(::testing::Message()
                         << sites << " sites, set " << static_cast<int>(kind) << (equal ? ", equal" : "") << ", cloud "
                         << static_cast<int>(cloud) << ", setting " << setting);
            Ring ring(sites);
            if (setting == 1) ring.meshes.back()->set_piece(1);
            const Set set = make_set(kind, equal, 12);
            const MassUnit unit = unit_of(set, cloud, m, setting < 2 ? 0 : 11);
            EXPECT_EQ(unit.dropped_bits > 0, setting >= 2);
            const Counts whole = rounded(counts_of(set, unit, cloud, MeshBox::whole(m), meshes), unit);
            for (const Counts& counts : exchange(ring, set, unit, cloud, m, meshes))
              EXPECT_TRUE(rounded(counts, unit) == whole);
            for (const auto& mesh : ring.meshes) EXPECT_EQ(mesh->counters().shared_planes, 0u);
          }
}

// 64-bit counts of both meshes are 16 bytes a cell of the slab.
TEST(SiteMesh, FewBytesGo) {
  const int m = 64;
  const Set set = make_set(Kind::kGrid, true, 64);
  std::array<double, 2> bytes;
  for (int mass_bits : {0, 11}) {
    Ring ring(2);
    const MassUnit unit = unit_of(set, Assignment::kPcs, m, mass_bits);
    exchange(ring, set, unit, Assignment::kPcs, m);
    bytes[mass_bits ? 1 : 0] = static_cast<double>(ring.meshes[0]->counters().bytes) / (m * m * m / 2);
  }
  EXPECT_LT(bytes[0], 13);
  EXPECT_LT(bytes[1], 4);  // though a quarter of the planes of so thin a slab are exact
}

// A particle further out than said: the sites still agree, and it is counted.
TEST(SiteMesh, PlanesRoundedByOneAndUsedByAnotherAreAlikeEverywhere) {
  Ring ring(3, 0.0);
  ring.slabs = Slabs({0u, 0x60000000u, 0xb0000000u});  // not those that SiteMesh was told
  const Set set = make_set(Kind::kGrid, true);
  const MassUnit unit = unit_of(set, Assignment::kPcs, 32, 8);
  const auto all = exchange(ring, set, unit, Assignment::kPcs, 32);
  EXPECT_TRUE(rounded(all[1], unit) == rounded(all[0], unit) && rounded(all[2], unit) == rounded(all[0], unit));
  EXPECT_GT(ring.meshes[0]->counters().shared_planes, 0u);
  EXPECT_EQ(ring.meshes[0]->counters().shared_planes, ring.meshes[2]->counters().shared_planes);
}

TEST(SiteMesh, SitesWithAnotherUnitAreRefused) {
  Ring ring(2);
  MassUnit unit{.bits = 12, .units_per_mass = 1};
  std::vector<std::uint64_t> counts(512, 7);
  ring.meshes[0]->start_sum(MeshBox::whole(8), unit, 1, counts.data(), nullptr);
  unit.units_per_mass = 2;
  ring.meshes[1]->start_sum(MeshBox::whole(8), unit, 1, counts.data(), nullptr);
  EXPECT_THROW(ring.meshes[1]->finish_sum(MeshBox::whole(8), unit, 1, counts.data(), nullptr), Error);
}

}  // namespace
}  // namespace maki::sites
