// Catalogues of groups, and what links them to earlier ones.
#include "src/groups/catalogue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <random>

#include "kernels/error.hpp"
#include "src/groups/progenitors.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/report/figures.hpp"
#include "src/run/products.hpp"
#include "src/simulation/frame.hpp"
#include "tests/src/groups/halo.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using namespace test;
using GroupCatalogues = InTempDir;

GroupCatalogue make_catalogue() {
  GroupCatalogue catalogue;
  catalogue.header = make_snapshot(1).header;  // a = 1/4, a box of 50 Mpc/h
  catalogue.particles = 1000;
  for (std::uint64_t k = 0; k < 3; ++k) {
    const auto x = static_cast<double>(k);
    FofGroup g;
    g.length = 40 - k;
    g.mass = 1000 * (3 - x);
    g.position = {1 + x, 2 + x, 49.9999999999};  // a float of the last would be the side
    g.deepest_id = 70 + k;
    g.velocity = {100, -50 * x, 7};
    g.centre_of_mass = {1.5 + x, 2, 3};
    g.offset = 0.5 + x;
    g.velocity_dispersion = 200 + x;
    for (std::size_t kind = 0; kind < kSphereKinds; ++kind)
      g.spheres[kind] = {500 * (3 - x) + static_cast<double>(kind), 0.1 * static_cast<double>(kind + 1)};
    g.v_max = 300 + x, g.v_max_radius = 0.03, g.spin = 0.04, g.concentration = 5 + x;
    catalogue.groups.push_back(g);
    for (std::uint64_t i = 0; i < g.length; ++i) catalogue.member_ids.push_back(1000 * k + i);
  }
  return catalogue;
}

struct Numbers {
  std::vector<std::size_t> shape;
  std::vector<double> values;
};

Numbers read(const std::string& path, const std::string& name, hid_t type) {
  H5Id file = open_hdf5(path), dataset = open_dataset(file, name), found(H5Dget_type(dataset), H5Tclose);
  EXPECT_GT(H5Tequal(found, type), 0) << name;
  return {dataset_shape(dataset), numbers_in(path, name)};
}

void expect_column(const std::string& path, const std::string& name, hid_t type, const std::vector<double>& expected) {
  const Numbers found = read(path, name, type);
  ASSERT_EQ(found.values.size(), expected.size()) << name;
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found.values[i], expected[i], 1e-6 * std::abs(expected[i])) << name << " " << i;
}

TEST_F(GroupCatalogues, HasGadgetsLayout) {
  const std::string path = dir / "g.hdf5";
  write_group_catalogue(path, make_catalogue(), make_provenance());
  H5Id file = open_hdf5(path);
  H5Id header = open_group(file, "Header");
  EXPECT_EQ(read_scalar<std::uint64_t>(header, "Ngroups_ThisFile"), 3u);
  EXPECT_EQ(read_scalar<std::uint64_t>(header, "Ngroups_Total"), 3u);
  EXPECT_EQ(read_scalar<std::uint64_t>(header, "Nids_Total"), 117u);
  EXPECT_EQ(read_scalar<std::uint64_t>(header, "Nsubhalos_Total"), 0u);
  EXPECT_EQ(read_scalar<std::int32_t>(header, "NumFiles"), 1);
  EXPECT_EQ(read_scalar<double>(header, "Time"), 0.25);
  EXPECT_EQ(read_scalar<double>(header, "Redshift"), 3);
  EXPECT_EQ(read_scalar<double>(header, "BoxSize"), 50);
  H5Id config = open_group(file, "Config"), parameters = open_group(file, "Parameters");
  EXPECT_EQ(read_scalar<double>(config, "FOF_LINKLENGTH"), 0.2);
  EXPECT_EQ(read_scalar<std::int32_t>(config, "FOF_GROUP_MIN_LEN"), 32);
  EXPECT_EQ(read_scalar<double>(parameters, "Omega0"), 0.308);

  expect_column(path, "Group/GroupLen", H5T_STD_I32LE, {40, 39, 38});
  expect_column(path, "Group/GroupMass", H5T_IEEE_F32LE, {3000, 2000, 1000});
  expect_column(path, "Group/GroupPos", H5T_IEEE_F32LE, {1, 2, 0, 2, 3, 0, 3, 4, 0});
  expect_column(path, "Group/GroupVel", H5T_IEEE_F32LE, {25, 0, 1.75, 25, -12.5, 1.75, 25, -25, 1.75});
  expect_column(path, "Group/GroupCMOffset", H5T_IEEE_F32LE, {0.5, 1.5, 2.5});
  expect_column(path, "Group/GroupVelDisp", H5T_IEEE_F32LE, {200, 201, 202});
  expect_column(path, "Group/Group_M_Mean200", H5T_IEEE_F32LE, {1500, 1000, 500});
  expect_column(path, "Group/Group_M_Crit500", H5T_IEEE_F32LE, {1502, 1002, 502});
  expect_column(path, "Group/Group_R_Crit200", H5T_IEEE_F32LE, {0.2, 0.2, 0.2});
  expect_column(path, "Group/Group_R_TopHat200", H5T_IEEE_F32LE, {0.4, 0.4, 0.4});
  expect_column(path, "Group/GroupVmax", H5T_IEEE_F32LE, {300, 301, 302});
  expect_column(path, "Group/GroupSpin", H5T_IEEE_F32LE, {0.04, 0.04, 0.04});
  expect_column(path, "Group/GroupConcentration", H5T_IEEE_F32LE, {5, 6, 7});
  EXPECT_EQ(read(path, "Group/GroupLenType", H5T_STD_I32LE).shape, (std::vector<std::size_t>{3, 6}));
  const Numbers offsets = read(path, "Group/GroupOffsetType", H5T_STD_I64LE);
  const Numbers ids = read(path, "IDs/ID", H5T_STD_U32LE);
  ASSERT_EQ(ids.values.size(), 117u);
  for (std::size_t k = 0; k < 3; ++k)  // a group's particles, as a user picks them out
    EXPECT_EQ(ids.values[static_cast<std::size_t>(offsets.values[6 * k + 1])], 1000.0 * static_cast<double>(k));

  H5Id velocity = open_dataset(file, "Group/GroupVel"), radius = open_dataset(file, "Group/Group_R_Mean200");
  EXPECT_EQ(read_scalar<double>(velocity, "a_scaling"), -1);
  EXPECT_EQ(read_scalar<double>(radius, "a_scaling"), 1);
  EXPECT_EQ(read_scalar<double>(radius, "h_scaling"), -1);
  EXPECT_EQ(read_scalar<double>(radius, "to_cgs"), UnitSystem{}.length_cgs);
}

GroupCatalogue groups_of(const HaloSet& set, const GroupOptions& options) {
  SnapshotHeader header = make_snapshot(1).header;
  header.box_size = 1;
  Particles particles;
  set.upload(test_stream(), particles);
  return find_groups(test_stream(), Communicator::self(), particles, make_frame(header, 1, {0.5, 0.5, 0.5}), header,
                     options);
}

constexpr double kCriticalToday = 27.7536627;  // 1e10 Msun/h / (Mpc/h)^3

// A row of eight among 512 particles at mean distance 1/8: within the linking length or just beyond.
TEST_F(GroupCatalogues, LinksWithinTheLengthTimesTheMeanDistance) {
  for (const auto& [factor, length] : {std::pair{0.995, std::uint64_t{8}}, {1.005, std::uint64_t{1}}}) {
    HaloSet set;
    for (std::size_t i = 0; i < 512; ++i) {
      const auto at = [](double x) { return (x + 0.3) / 8; };
      const double z = i < 8 ? 0.2 * factor * static_cast<double>(i) : static_cast<double>(i % 8);
      set.add({at(static_cast<double>(i / 64)), at(static_cast<double>(i / 8 % 8)), at(z)}, {0, 0, 0},
              static_cast<float>(0.308 * kCriticalToday / 512));
    }
    const GroupCatalogue found = groups_of(set, {0.2, 1});
    ASSERT_FALSE(found.groups.empty());
    EXPECT_EQ(found.groups[0].length, length) << factor;
  }
}

// Bryan and Norman's overdensity at the snapshot's own redshift, 3.
TEST_F(GroupCatalogues, TheTopHatSphereIsThatOfItsRedshift) {
  constexpr double kBall = 4.0 / 3 * std::numbers::pi;
  HaloSet set;
  const double mass = kBall * std::pow(0.03, 3) * 200 * kCriticalToday * 0.308;
  add_halo(set, {.centre = {0.4, 0.4, 0.4}, .radius = 0.03, .edge = 4, .mass = mass, .particles = 20000}, 3);
  const GroupCatalogue found = groups_of(set, {0.2, 32});
  ASSERT_FALSE(found.groups.empty());
  const Overdensity& sphere = found.groups[0].spheres[kTopHat200];
  const double omega = 0.308 * 64 / (0.308 * 64 + 0.692), critical = kCriticalToday * 0.308 / omega;
  const double density = sphere.mass / (kBall * std::pow(sphere.radius, 3));
  EXPECT_NEAR(density / (virial_overdensity(omega, true) * critical), 1, 0.005);
}

TEST_F(GroupCatalogues, WideIdsAndNoGroups) {
  GroupCatalogue catalogue = make_catalogue();
  catalogue.member_ids[5] = std::uint64_t{1} << 40;
  write_group_catalogue(dir / "wide.hdf5", catalogue, {});
  EXPECT_EQ(read(dir / "wide.hdf5", "IDs/ID", H5T_STD_U64LE).values[5], std::pow(2.0, 40));
  catalogue.groups.clear();
  catalogue.member_ids.clear();
  write_group_catalogue(dir / "none.hdf5", catalogue, {});
  H5Id none = open_hdf5(dir / "none.hdf5");
  EXPECT_EQ(read(dir / "none.hdf5", "Group/GroupLen", H5T_STD_I32LE).values.size(), 0u);
  H5Id header = open_group(none, "Header");
  EXPECT_EQ(read_scalar<std::uint64_t>(header, "Ngroups_Total"), 0u);
}

TEST_F(GroupCatalogues, RefusesToReplaceAndTooLongGroups) {
  GroupCatalogue catalogue = make_catalogue();
  write_group_catalogue(dir / "g.hdf5", catalogue, {});
  expect_error([&] { write_group_catalogue(dir / "g.hdf5", catalogue, {}); }, {"exists"});
  write_group_catalogue(dir / "g.hdf5", catalogue, {}, true);
  catalogue.groups[0].length = std::uint64_t{1} << 31;
  expect_error([&] { write_group_catalogue(dir / "h.hdf5", catalogue, {}); }, {"GroupLen", "2147483648"});
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(MassFunctionFile, HasCountsErrorsAndTheExpectation) {
  TempDir dir;
  GroupCatalogue catalogue = make_catalogue();
  catalogue.groups[1].spheres[kMean200].mass = 1550;  // in the bin of the first: log10 of 1.5e13 is 13.18
  const double width = 0.2 * std::numbers::ln10;
  // dn/dlnM = exp(-ln M): the mean over a bin is known.
  write_mass_function(
      dir / "m.txt", catalogue, [](double mass) { return 1 / mass; }, make_provenance());
  const report::Columns file = report::read_columns(dir / "m.txt");
  expect_contains(file.comments, {"# Redshift 3", "# LinkingLength 0.2", "# MinimumLength 32", "# Groups 3",
                                  "commit 0123456789ab", "solar masses/h", "Tinker08"});
  EXPECT_EQ(file.column("log10(M)"), (std::vector<double>{12.7, 13.1}));  // 12.7: 5e12
  EXPECT_EQ(file.column("Groups")[1], 2);
  EXPECT_NEAR(file.column("dn/dlnM")[1], 2 / (125000 * width), 1e-11);
  EXPECT_NEAR(file.column("Error")[1], std::sqrt(2) / (125000 * width), 1e-11);
  const double low = std::pow(10, 13.0 - 10), high = std::pow(10, 13.2 - 10), expected = file.column("Tinker08")[1];
  EXPECT_NEAR(expected, (1 / low - 1 / high) / width, 1e-4 * expected);
}

using Ids = std::vector<std::uint64_t>;

CatalogueGroups catalogue(double redshift, const std::vector<Ids>& groups) {
  CatalogueGroups c;
  c.name = "groups.hdf5";
  c.redshift = redshift;
  for (const Ids& ids : groups) {
    c.ids.insert(c.ids.end(), ids.begin(), ids.end());
    c.begins.push_back(c.ids.size());
    c.rows.emplace_back();
  }
  return c;
}

double weights(const std::vector<int>& ranks) {
  return std::accumulate(ranks.begin(), ranks.end(), 0.0,
                         [](double sum, int rank) { return sum + std::pow(1.0 + rank, -2.0 / 3); });
}

// Two groups merge, the smaller one leaves most of its outer members behind in a third; one dissolves, one is new.
TEST(MergerLinks, FollowTheMostBoundMembers) {
  const CatalogueGroups earlier = catalogue(1, {{1, 2, 3, 4, 5, 6}, {11, 12, 13, 14, 15}, {21, 22, 23}});
  const CatalogueGroups later = catalogue(0, {{1, 2, 3, 4, 11, 5, 99}, {13, 14, 15, 6}, {31, 32, 33}});
  const MergerLinks found = link_catalogues(earlier, later);
  EXPECT_EQ(found.descendant, (std::vector<std::int64_t>{0, 1, kNoGroup}));
  EXPECT_EQ(found.main_progenitor, (std::vector<std::int64_t>{0, 1, kNoGroup}));
  EXPECT_EQ(found.begins, (std::vector<std::uint64_t>{0, 2, 4, 4}));
  ASSERT_EQ(found.links.size(), 4u);
  const auto expect = [&](std::size_t i, std::uint64_t group, std::uint64_t progenitor, std::uint64_t shared) {
    EXPECT_EQ(found.links[i].group, group);
    EXPECT_EQ(found.links[i].progenitor, progenitor);
    EXPECT_EQ(found.links[i].shared, shared);
  };
  expect(0, 0, 0, 5);
  expect(1, 0, 1, 1);
  expect(2, 1, 1, 3);
  expect(3, 1, 0, 1);
  EXPECT_NEAR(found.links[0].weight, weights({0, 1, 2, 3, 4}) / weights({0, 1, 2, 3, 4, 5}), 1e-12);
  EXPECT_NEAR(found.links[1].weight, weights({0}) / weights({0, 1, 2, 3, 4}), 1e-12);
  EXPECT_NEAR(found.links[2].weight, weights({2, 3, 4}) / weights({0, 1, 2, 3, 4}), 1e-12);
  EXPECT_NEAR(found.links[0].weight_in_group, weights({0, 1, 2, 3, 5}) / weights({0, 1, 2, 3, 4, 5, 6}), 1e-12);
}

// The two most bound members outweigh the three others.
TEST(MergerLinks, WhereTheCoreWentIsTheDescendant) {
  const CatalogueGroups earlier = catalogue(1, {{1, 2, 3, 4, 5}});
  const MergerLinks found = link_catalogues(earlier, catalogue(0, {{3, 4, 5, 50, 51}, {1, 2, 60}}));
  EXPECT_EQ(found.descendant, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(found.main_progenitor, (std::vector<std::int64_t>{kNoGroup, 0}));
}

// By a search for each member, and sums in the order of the earlier members: the same bits.
TEST(MergerLinks, AreThoseOfASearchForEachMember) {
  std::mt19937_64 random(9);
  const auto shuffled = [&](double redshift) {
    std::vector<Ids> groups(60);
    for (std::uint64_t id = 1; id < 20000; ++id)
      if (random() % 4 > 0) groups[(id / 300 + (random() % 5 == 0 ? random() % 60 : 0)) % 60].push_back(977 * id);
    for (Ids& ids : groups) std::shuffle(ids.begin(), ids.end(), random);
    return catalogue(redshift, groups);
  };
  const CatalogueGroups earlier = shuffled(1), later = shuffled(0);
  const auto weight = [](std::uint64_t rank) { return 1 / std::cbrt(std::pow(1.0 + static_cast<double>(rank), 2)); };
  const auto total = [&](std::uint64_t length) {
    double sum = 0;
    for (std::uint64_t rank = 0; rank < length; ++rank) sum += weight(rank);
    return sum;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, ProgenitorLink> wanted;  // by earlier and later group
  for (std::uint64_t g = 0; g < earlier.size(); ++g)
    for (std::uint64_t i = earlier.begins[g]; i < earlier.begins[g + 1]; ++i) {
      const auto found = std::find(later.ids.begin(), later.ids.end(), earlier.ids[i]);
      if (found == later.ids.end()) continue;
      const auto at = static_cast<std::uint64_t>(found - later.ids.begin());
      std::uint64_t now = 0;
      while (later.begins[now + 1] <= at) ++now;
      ProgenitorLink& link = wanted.try_emplace({g, now}, ProgenitorLink{now, g, 0, 0, 0}).first->second;
      ++link.shared;
      link.weight += weight(i - earlier.begins[g]);
      link.weight_in_group += weight(at - later.begins[now]);
    }
  const MergerLinks links = link_catalogues(earlier, later);
  ASSERT_EQ(links.links.size(), wanted.size());
  EXPECT_GT(wanted.size(), 1000u);
  for (const ProgenitorLink& link : links.links) {
    const ProgenitorLink& one = wanted.at({link.progenitor, link.group});
    ASSERT_EQ(link.shared, one.shared);
    ASSERT_EQ(link.weight, one.weight / total(earlier.length(link.progenitor)));
    ASSERT_EQ(link.weight_in_group, one.weight_in_group / total(later.length(link.group)));
  }
}

TEST(MergerLinks, OfEmptyCatalogues) {
  const CatalogueGroups none = catalogue(1, {}), one = catalogue(0, {{1, 2}});
  EXPECT_TRUE(link_catalogues(none, one).links.empty());
  EXPECT_EQ(link_catalogues(none, one).main_progenitor, (std::vector<std::int64_t>{kNoGroup}));
  EXPECT_EQ(link_catalogues(one, none).descendant, (std::vector<std::int64_t>{kNoGroup}));
}

TEST(MergerLinks, RefuseAParticleInTwoGroups) {
  EXPECT_THROW(link_catalogues(catalogue(1, {{1}}), catalogue(0, {{1, 2}, {2}})), Error);
}

GroupCatalogue made(double time, const std::vector<Ids>& groups) {
  GroupCatalogue c;
  c.header = make_snapshot(1).header;
  c.header.time = time;
  c.header.redshift = 1 / time - 1;
  for (const Ids& ids : groups) {
    c.groups.push_back({.length = ids.size(), .mass = static_cast<double>(ids.size()), .position = {1, 2, 3}});
    c.member_ids.insert(c.member_ids.end(), ids.begin(), ids.end());
  }
  return c;
}

TEST(MergerLinks, OfFiles) {
  TempDir dir;
  const std::string first = dir / "groups_000.hdf5", second = dir / "groups_001.hdf5", links = dir / "links_001.hdf5";
  write_group_catalogue(first, made(0.5, {{7, 5, 9}, {1, 2}}), make_provenance());
  write_group_catalogue(second, made(1, {{1, 7, 5, 9, 4}}), make_provenance());
  const CatalogueGroups read = read_catalogue_groups(first);
  EXPECT_EQ(read.ids, (Ids{7, 5, 9, 1, 2}));
  EXPECT_EQ(read.length(0), 3u);
  EXPECT_FLOAT_EQ(read.rows[1].mass, 2);
  EXPECT_FLOAT_EQ(read.rows[1].position[2], 3);
  EXPECT_DOUBLE_EQ(read.redshift, 1);
  EXPECT_EQ(links_path(second), links);
  EXPECT_EQ(link_group_files(first, second, false), "2 of 2 groups at z = 1 live on in 1 of 1 at z = 0");
  EXPECT_EQ(numbers_in(links, "PreviousGroup/Descendant"), (std::vector<double>{0, 0}));
  EXPECT_EQ(numbers_in(links, "Group/MainProgenitor"), (std::vector<double>{0}));
  EXPECT_EQ(numbers_in(links, "Group/ProgenitorCount"), (std::vector<double>{2}));
  EXPECT_EQ(numbers_in(links, "Progenitors/Progenitor"), (std::vector<double>{0, 1}));
  EXPECT_EQ(numbers_in(links, "Progenitors/Shared"), (std::vector<double>{3, 1}));
  EXPECT_THROW(link_group_files(first, second, false), Error);  // exists
  EXPECT_NO_THROW(link_group_files(first, second, true));
  EXPECT_THROW(link_group_files(second, first, true), Error);  // back in time
  EXPECT_THROW(read_catalogue_groups(links), Error);
}

}  // namespace
}  // namespace maki
