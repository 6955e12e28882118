#include "kernels/groups/friends.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/error.hpp"
#include "kernels/particles/particles.hpp"
#include "tests/kernels/particles/at_rest.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/messages.hpp"
#include "tests/test_stream.hpp"
#include "tests/threads.hpp"

namespace maki {
namespace {

using testing::to_fixed;
using Set = std::vector<SourceParticle>;

struct Found {
  Set sorted;
  std::vector<std::uint32_t> labels;
};

Found friends_of(const Set& set, double length, std::uint32_t leaf_size = 8) {
  const Stream& stream = test::test_stream();
  Particles particles;
  MortonSorter sorter;
  Octree tree;
  DeviceBuffer<CellBox> boxes("boxes");
  DeviceBuffer<std::uint32_t> labels("labels");
  testing::upload_at_rest(stream, set, particles);
  sorter.sort(stream, particles, nullptr);
  build_octree(stream, sorter.keys(), leaf_size, 0, tree);
  make_cell_boxes(stream, particles.source.data(), tree, boxes);
  find_friends(stream, particles.source.data(), tree, boxes, length, labels);
  return {particles.source.download(stream), labels.download(stream)};
}

std::uint32_t root_of(std::vector<std::uint32_t>& parent, std::uint32_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

// All pairs, by the definition.
std::vector<std::uint32_t> labels_of_pairs(const Set& set, double length) {
  const double limit = length * kSideToUnits * length * kSideToUnits;
  std::vector<std::uint32_t> parent(set.size());
  std::iota(parent.begin(), parent.end(), 0u);
  const auto apart = [](std::uint32_t a, std::uint32_t b) { return static_cast<long double>(signed_difference(a, b)); };
  for (std::uint32_t i = 0; i < set.size(); ++i)
    for (std::uint32_t j = i + 1; j < set.size(); ++j) {
      const long double x = apart(set[i].x, set[j].x), y = apart(set[i].y, set[j].y), z = apart(set[i].z, set[j].z);
      if (x * x + y * y + z * z > limit) continue;
      const std::uint32_t a = root_of(parent, i), b = root_of(parent, j);
      parent[std::max(a, b)] = std::min(a, b);
    }
  for (std::uint32_t i = 0; i < set.size(); ++i) parent[i] = root_of(parent, i);
  return parent;
}

std::size_t groups_in(const std::vector<std::uint32_t>& labels) {
  std::size_t groups = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) groups += labels[i] == i;
  return groups;
}

void expect_pairs(const Set& set, double length, const std::string& what) {
  for (const std::uint32_t leaf_size : {1u, 8u, 40u}) {
    const Found found = friends_of(set, length, leaf_size);
    EXPECT_TRUE(found.labels == labels_of_pairs(found.sorted, length)) << what << ", leaves of " << leaf_size;
  }
}

// Clumps of many sizes, some across faces and at a corner of the box, in a thin background.
Set clumps(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> u(0, 1);
  Set set(n);
  double centre[3] = {0, 0, 0}, scale = 0.01;  // the corner
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 400 == 399) {
      for (double& c : centre) c = u(random);
      if (i % 3 == 0) centre[i % 2] = 0;  // a face
      scale = std::pow(10.0, -1 - 3 * u(random));
    }
    const bool background = i % 4 == 0;
    double x[3];
    for (int a = 0; a < 3; ++a) {
      x[a] = background ? u(random) : centre[a] + scale * normal(random);
      x[a] -= std::floor(x[a]);
    }
    set[i] = {to_fixed(x[0]), to_fixed(x[1]), to_fixed(x[2]), 1};
  }
  return set;
}

double mean_distance(std::size_t n) { return 1 / std::cbrt(static_cast<double>(n)); }

TEST(Friends, AreThoseOfAllPairs) {
  const Set set = clumps(10000, 5);
  const double length = 0.2 * mean_distance(set.size());
  const Found found = friends_of(set, length);
  const std::vector<std::uint32_t> expected = labels_of_pairs(found.sorted, length);
  EXPECT_TRUE(found.labels == expected);
  EXPECT_GT(groups_in(expected), 500u);
  // A group across the corner is one.
  const auto of = [&](std::uint32_t low, std::uint32_t high) {
    for (std::size_t i = 0; i < found.sorted.size(); ++i) {
      const SourceParticle& p = found.sorted[i];
      if (p.x - low < high - low && p.y - low < high - low && p.z - low < high - low) return found.labels[i];
    }
    return ~0u;
  };
  const std::uint32_t above = of(0, 1u << 26), below = of(0u - (1u << 26), 0u);
  EXPECT_NE(above, ~0u);
  EXPECT_EQ(above, below);
}

TEST(Friends, AreThoseOfAllPairsAtAnyLengthAndLeaf) {
  for (const double length : {1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.3, 0.499}) {
    expect_pairs(clumps(1200, 7), length, "clumps, " + std::to_string(length));
    expect_pairs(testing::uniform_set(500, 3), length, "uniform, " + std::to_string(length));
  }
}

TEST(Friends, AtExactlyTheLengthAreFriends) {
  const double length = 1.0 / 1024;
  const std::uint32_t units = 1u << 22;
  const Set touching = {{0u - 5, 7, 9, 1}, {units - 5, 7, 9, 1}}, apart = {{0u - 5, 7, 9, 1}, {units - 4, 7, 9, 1}};
  EXPECT_EQ(groups_in(friends_of(touching, length).labels), 1u);
  EXPECT_EQ(groups_in(friends_of(apart, length).labels), 2u);
}

// Many particles at each of a few points: leaves that no division makes small.
TEST(Friends, AtOnePlaceAreOneGroup) {
  Set set;
  for (std::uint32_t k = 0; k < 5; ++k) set.insert(set.end(), 1000, {k << 25, 3u << 30, 0u - k, 1});
  expect_pairs(set, 1e-5, "apart");
  EXPECT_EQ(groups_in(friends_of(set, 1e-5).labels), 5u);
  EXPECT_EQ(groups_in(friends_of(set, 0.01).labels), 1u);
}

TEST(Friends, OfOneParticleAndOfAll) {
  EXPECT_EQ(friends_of({{1, 2, 3, 1}}, 0.1).labels, std::vector<std::uint32_t>{0});
  const Set set = testing::uniform_set(3000, 11);
  EXPECT_EQ(groups_in(friends_of(set, 2 * mean_distance(set.size())).labels), 1u);
  EXPECT_EQ(groups_in(friends_of(set, 1e-8).labels), 3000u);
}

TEST(Friends, AreTheSameForAnyNumberOfThreads) {
  const Set set = clumps(30000, 13);
  const double length = 0.2 * mean_distance(set.size());
  test::expect_same_for_threads([&] { return friends_of(set, length).labels; }, {1, 2, 2, 2, 5, 5, 5});
}

TEST(Friends, RefuseALengthOfHalfTheBox) {
  for (const double length : {0.0, -0.1, 0.5, 2.0})
    test::expect_contains(test::error_of([&] { friends_of(testing::uniform_set(10, 1), length); }),
                          {"below half the box"});
}

}  // namespace
}  // namespace maki
