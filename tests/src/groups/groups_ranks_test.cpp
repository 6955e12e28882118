// Groups over ranks are those of one rank, to the bit.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "src/groups/catalogue.hpp"
#include "src/io/safe_file.hpp"
#include "src/run/products.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/src/groups/halo.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "tests/test_stream.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {
namespace {

using namespace test;
using GroupsOverRanks = InSharedDir;

SnapshotHeader header() {
  SnapshotHeader h = make_snapshot(1).header;
  h.box_size = 1;
  return h;
}

constexpr std::array<double, 3> kMiddle = {0.5, 0.5, 0.5};

// The particles i with is_mine(i).
template <class IsMine>
void upload_part(const HaloSet& set, const IsMine& is_mine, Particles& particles) {
  HaloSet mine;
  for (std::size_t i = 0; i < set.ids.size(); ++i) {
    if (!is_mine(i)) continue;
    mine.add(set.fractions[i], set.momenta[i], set.masses[i]);
    mine.ids.back() = set.ids[i];
  }
  mine.upload(test_stream(), particles);
}

// The groups of the particles i with share(i) = this rank.
template <class Share>
GroupCatalogue find(const HaloSet& set, const Communicator& ranks, const GroupOptions& options, Share share) {
  Particles particles;
  upload_part(
      set, [&](std::size_t i) { return share(i) == ranks.rank(); }, particles);
  return find_groups(test_stream(), ranks, particles, make_frame(header(), 1, kMiddle), header(), options);
}

// A catalogue over all ranks beside that of one.
void expect_like(GroupCatalogue over_ranks, const GroupCatalogue& alone) {
  const Communicator world = Communicator::world();
  EXPECT_EQ(over_ranks.member_ids.size(), share_of(alone.members(), world.rank(), world.size()).size());
  gather_members(world, over_ranks);
  if (world.rank() > 0) return;
  EXPECT_EQ(over_ranks.particles, alone.particles);
  EXPECT_EQ(over_ranks.minimum, alone.minimum);
  EXPECT_TRUE(over_ranks.member_ids == alone.member_ids);
  ASSERT_EQ(over_ranks.groups.size(), alone.groups.size());
  EXPECT_EQ(std::memcmp(over_ranks.groups.data(), alone.groups.data(), alone.groups.size() * sizeof(FofGroup)), 0);
}

void expect_same(const HaloSet& set, const GroupOptions& options, std::size_t least_groups) {
  const Communicator world = Communicator::world();
  const GroupCatalogue alone = find(set, Communicator::self(), options, [](std::size_t) { return 0; });
  EXPECT_GE(alone.groups.size(), least_groups);
  expect_like(find(set, world, options, [&](std::size_t i) { return static_cast<int>(i) % world.size(); }), alone);
  expect_like(find(set, world, options, [&](std::size_t) { return world.size() - 1; }), alone);
}

HaloSet haloes(int number, std::size_t field, unsigned seed) {
  HaloSet set;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> u(0, 1);
  for (int k = 0; k < number; ++k) {
    NfwHalo halo;
    halo.centre = {u(random), u(random), u(random)};
    if (k % 3 == 0) halo.centre = {k % 2 ? 0.0 : 0.5, 0.5, 0.25 * (k % 4)};  // at borders of the box and of domains
    halo.particles = k == 0 ? 2000 : 50 + 20 * (k % 9);
    halo.radius = 0.03 * std::cbrt(static_cast<double>(halo.particles) / 2000);
    halo.mass = 1e-3 * static_cast<double>(halo.particles);
    halo.rotation = 10;
    add_halo(set, halo, seed + k);
  }
  for (std::size_t i = 0; i < field; ++i)
    set.add({u(random), u(random), u(random)}, {static_cast<float>(u(random)), 0, 1}, 1e-3f);
  return set;
}

TEST_F(GroupsOverRanks, AreThoseOfOneRank) { expect_same(haloes(30, 6000, 3), {0.2, 32}, 20); }

TEST_F(GroupsOverRanks, OfAllLengths) {
  expect_same(haloes(10, 1000, 5), {0.2, 1}, 300);
  expect_same(haloes(10, 1000, 5), {0.7, 8}, 3);
}

// A chain of friends that winds through all domains takes its name from one end.
TEST_F(GroupsOverRanks, AreFollowedAcrossManyDomains) {
  HaloSet set;
  const int n = 3000;
  for (int i = 0; i < n; ++i) {
    const double t = (i + 0.5) / n;
    set.add({t, std::fmod(4 * t, 1.0), std::fmod(16 * t, 1.0)}, {1, 2, 3}, 1e-3f);
  }
  for (int i = 0; i < 200; ++i) set.add({0.4, 0.05, 0.9}, {0, 0, 0}, 1e-3f);  // at one place
  const GroupOptions options{0.12, 20};
  expect_same(set, options, 2);
}

TEST_F(GroupsOverRanks, OfFewerParticlesThanRanks) {
  HaloSet set;
  for (int i = 0; i < 2; ++i) set.add({0.5 + 0.01 * i, 0.5, 0.5}, {1, 2, 3}, 1);
  expect_same(set, {0.2, 1}, 1);
  HaloSet none;
  expect_same(none, {0.2, 1}, 0);
}

TEST_F(GroupsOverRanks, RefuseMassesThatDoNotFit) {
  HaloSet set = haloes(1, 0, 1);
  for (float& mass : set.masses) mass *= 30;
  const std::string error =
      error_of([&] { find(set, world, {}, [&](std::size_t i) { return static_cast<int>(i) % world.size(); }); });
  expect_contains(error, {"do not fit the cosmology", "times that of Omega0"});
}

TEST_F(GroupsOverRanks, RefuseTooLongALinkingLengthTogether) {
  const HaloSet set = haloes(1, 0, 1);
  const std::string error = error_of([&] { find(set, Communicator::world(), {9, 32}, [](std::size_t) { return 0; }); });
  expect_contains(error, {"linking length", "below half the box"});
}

// Catalogues and links of two times, written by all ranks and read by all.
TEST_F(GroupsOverRanks, FilesAndLinksAreThoseOfOneRank) {
  const std::string directory = dir / "";
  HaloSet set = haloes(20, 3000, 7);
  for (const std::string name : {"groups_000.hdf5", "groups_001.hdf5"}) {
    const bool later = name == "groups_001.hdf5";
    if (later)  // groups lose members to others
      for (std::size_t i = 0; i < set.ids.size(); i += 3) std::swap(set.ids[i], set.ids[(i * 7919) % set.ids.size()]);
    const auto write = [&](const Communicator& ranks, const std::string& path) {
      GroupCatalogue found =
          find(set, ranks, {0.2, 32}, [&](std::size_t i) { return static_cast<int>(i) % ranks.size(); });
      found.header.redshift = later ? 0 : 1;
      write_group_files(path, found, nullptr, {}, false, ranks);
    };
    write(world, directory + name);
    if (world.rank() == 0) write(Communicator::self(), directory + "alone_" + name);
  }
  const std::string told = link_group_files(directory + "groups_000.hdf5", directory + "groups_001.hdf5", false, world);
  root_succeeds(world, [&] {
    EXPECT_EQ(told, link_group_files(directory + "alone_groups_000.hdf5", directory + "alone_groups_001.hdf5", false));
    const std::string first = directory + "links_001.hdf5", alone = directory + "links_alone_groups_001.hdf5";
    for (const char* dataset : {"Group", "Progenitor", "Shared", "Weight", "WeightInGroup"}) {
      const std::vector<double> numbers = numbers_in(first, std::string("Progenitors/") + dataset);
      EXPECT_GT(numbers.size(), 40u);
      EXPECT_EQ(numbers, numbers_in(alone, std::string("Progenitors/") + dataset)) << dataset;
    }
    EXPECT_EQ(numbers_in(first, "PreviousGroup/Descendant"), numbers_in(alone, "PreviousGroup/Descendant"));
    EXPECT_EQ(bytes_of_file(directory + "groups_001.hdf5"), bytes_of_file(directory + "alone_groups_001.hdf5"));
  });
}

TEST_F(GroupsOverRanks, ACatalogueThatExistsIsRefusedOnAllRanks) {
  const std::string path = dir / "groups.hdf5";
  write_group_files(path, {}, nullptr, {}, false, world);
  expect_error([&] { write_group_files(path, {}, nullptr, {}, false, world); }, {"exists"});
  expect_error([&] { link_group_files(path, path, true, world); }, {"is not later than"});
}

// Every site has all of the ranks.
TEST_F(GroupsOverRanks, OverSitesAreThoseOfOneSiteToo) {
  const HaloSet set = haloes(12, 500, 5);
  const GroupOptions options{0.2, 32};
  const GroupCatalogue alone = find(set, Communicator::self(), options, [](std::size_t) { return 0; });
  ASSERT_GE(alone.groups.size(), 10u);
  for (const int count : {2, 3}) {
    const auto at_each = [&](sites::Sites& sites) {
      const auto rank = static_cast<std::size_t>(world.rank()), size = static_cast<std::size_t>(world.size());
      const auto is_mine = [&](std::size_t i) {
        return static_cast<int>(i) % count == sites.me() && i / static_cast<std::size_t>(count) % size == rank;
      };
      Particles particles;
      upload_part(set, is_mine, particles);
      sites::GatheredParticles all(sites, test_stream(), particles);
      GroupCatalogue found;
      if (all.here())
        found = find_groups(test_stream(), world, all.particles(), make_frame(header(), 1, kMiddle), header(), options);
      expect_like(catalogue_from_site(sites, all.place(), found), alone);
    };
    replay_sites(count, at_each, world);
  }
}

}  // namespace
}  // namespace maki
