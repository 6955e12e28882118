#include "kernels/tree/own_groups.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "tests/kernels/tree/sets.hpp"
#include "tests/kernels/tree/tree_set.hpp"

namespace maki {
namespace {

bool same(const Group& a, const Group& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void expect_own_groups(const std::function<bool(std::uint32_t)>& is_own) {
  constexpr std::uint32_t kParticles = 3000;
  testing::TreeSet t(testing::clustered_set(kParticles, 2), 16, 3);
  const std::vector<Group> all = t.groups.download(t.stream);
  std::vector<std::uint32_t> own_before{0};
  for (std::uint32_t i = 0; i < kParticles; ++i) own_before.push_back(own_before.back() + (is_own(i) ? 1 : 0));
  DeviceBuffer<std::uint32_t> before("before");
  before.upload(t.stream, own_before);
  DeviceBuffer<Group> own("own");
  keep_own_groups(t.stream, before, t.groups, own);

  const std::vector<Group> kept = t.groups.download(t.stream), members = own.download(t.stream);
  ASSERT_EQ(members.size(), kept.size());
  std::size_t next = 0;
  std::uint32_t seen = 0;
  for (const Group& group : all) {
    std::uint32_t own_here = 0;
    for (std::uint32_t i = group.first; i < group.first + group.count; ++i) own_here += is_own(i) ? 1 : 0;
    if (own_here == 0) continue;
    ASSERT_LT(next, kept.size());
    EXPECT_TRUE(same(kept[next], group)) << "group " << next << " as it was, with its box";
    EXPECT_EQ(members[next].first, seen);
    EXPECT_EQ(members[next].count, own_here);
    seen += own_here;
    ++next;
  }
  EXPECT_EQ(next, kept.size());
  EXPECT_EQ(seen, own_before.back());
}

TEST(OwnGroups, ThoseWithOwnParticlesStayInOrder) {
  expect_own_groups([](std::uint32_t i) { return i % 97 == 5; });
  expect_own_groups([](std::uint32_t i) { return i / 40 % 3 == 1; });
  expect_own_groups([](std::uint32_t i) { return i == 2999; });
}

TEST(OwnGroups, AllOrNone) {
  expect_own_groups([](std::uint32_t) { return true; });
  expect_own_groups([](std::uint32_t) { return false; });
}

}  // namespace
}  // namespace maki
