#include "src/groups/progenitors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/error.hpp"
#include "src/groups/catalogue.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/run/group_files.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki {
namespace {

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
  c.header = test::make_snapshot(1).header;
  c.header.time = time;
  c.header.redshift = 1 / time - 1;
  for (const Ids& ids : groups) {
    FofGroup g;
    g.length = ids.size();
    g.mass = static_cast<double>(ids.size());
    g.position = {1, 2, 3};
    c.groups.push_back(g);
    c.member_ids.insert(c.member_ids.end(), ids.begin(), ids.end());
  }
  return c;
}

std::vector<std::int64_t> column(const std::string& path, const std::string& name) {
  H5Id file = open_hdf5(path), dataset = open_dataset(file, name);
  std::vector<std::int64_t> numbers(dataset_shape(dataset)[0]);
  if (!numbers.empty()) read_rows(dataset, 0, numbers.size(), hdf5_memory_type<std::int64_t>(), numbers.data());
  return numbers;
}

TEST(MergerLinks, OfFiles) {
  test::TempDir dir;
  const std::string first = dir / "groups_000.hdf5", second = dir / "groups_001.hdf5", links = dir / "links_001.hdf5";
  write_group_catalogue(first, made(0.5, {{7, 5, 9}, {1, 2}}), test::make_provenance());
  write_group_catalogue(second, made(1, {{1, 7, 5, 9, 4}}), test::make_provenance());
  const CatalogueGroups read = read_catalogue_groups(first);
  EXPECT_EQ(read.ids, (Ids{7, 5, 9, 1, 2}));
  EXPECT_EQ(read.length(0), 3u);
  EXPECT_FLOAT_EQ(read.rows[1].mass, 2);
  EXPECT_FLOAT_EQ(read.rows[1].position[2], 3);
  EXPECT_DOUBLE_EQ(read.redshift, 1);
  EXPECT_EQ(links_path(second), links);
  EXPECT_EQ(link_group_files(first, second, false), "2 of 2 groups at z = 1 live on in 1 of 1 at z = 0");
  EXPECT_EQ(column(links, "PreviousGroup/Descendant"), (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(column(links, "Group/MainProgenitor"), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(column(links, "Group/ProgenitorCount"), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(column(links, "Progenitors/Progenitor"), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(column(links, "Progenitors/Shared"), (std::vector<std::int64_t>{3, 1}));
  EXPECT_THROW(link_group_files(first, second, false), Error);  // exists
  EXPECT_NO_THROW(link_group_files(first, second, true));
  EXPECT_THROW(link_group_files(second, first, true), Error);  // back in time
  EXPECT_THROW(read_catalogue_groups(links), Error);
}

}  // namespace
}  // namespace maki
