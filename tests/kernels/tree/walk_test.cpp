#include "kernels/tree/walk.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/kernels/tree/tree_set.hpp"
#include "tests/on_device.hpp"

namespace maki {
namespace {

struct Walked : testing::TreeSet {
  InteractionLists lists;
  WalkOptions options;

  Walked(const std::vector<SourceParticle>& set, WalkOptions o, int min_level)
      : TreeSet(set, 64, min_level), options(o) {
    walk_tree(stream, tree, options, all_groups(), lists);
  }
  // The particles that each group's list stands for, in order.
  std::vector<std::uint32_t> covered(std::size_t g) const {
    const auto ranges = lists.ranges.download(stream);
    const auto words = lists.words.download(stream);
    const auto first = tree.first.download(stream), count = tree.count.download(stream);
    std::vector<std::uint32_t> out;
    for (std::uint32_t k = 0; k < ranges[g].cells + ranges[g].leaves; ++k) {
      const std::uint32_t c = words[ranges[g].begin + k];
      for (std::uint32_t p = first[c]; p < first[c] + count[c]; ++p) out.push_back(p);
    }
    std::sort(out.begin(), out.end());
    return out;
  }
};

// By angle, and by estimated error, whatever error a cell may make: none is taken as a multipole by a group with members
// in it.
TEST(Walk, EveryListHoldsEveryParticleOnceAndItsOwnOneByOne) {
  constexpr std::pair<float, float> rules[] = {{0.3f, 0}, {0.7f, 0},    {1, 0},       {0.5f, 1e-3f},
                                               {0.5f, 1}, {0.5f, 1e3f}, {0.5f, 1e20f}};
  for (const auto& set :
       {testing::uniform_set(3000, 1, 0.25, 0.75), testing::clustered_set(3000, 2), testing::uniform_set(1, 3)}) {
    testing::TreeSet t(set, 64, 0);
    t.know_errors();
    const auto groups = t.groups.download(t.stream);
    const auto first = t.tree.first.download(t.stream), count = t.tree.count.download(t.stream);
    for (const auto& [theta, rms] : rules) {
      InteractionLists lists;
      walk_tree(t.stream, t.tree, {.theta = theta, .reference_acceleration = rms}, t.all_groups(), lists);
      const auto words = testing::words_of(t.stream, lists);
      for (std::size_t g = 0; g < groups.size(); ++g) {
        std::vector<int> times(set.size(), 0);
        for (const std::uint32_t c : words[g].cells) {
          ASSERT_TRUE(first[c] + count[c] <= groups[g].first || groups[g].first + groups[g].count <= first[c])
              << "group " << g << " is in cell " << c << ", theta " << theta << ", rms acceleration " << rms;
          for (std::uint32_t p = first[c]; p < first[c] + count[c]; ++p) ++times[p];
        }
        for (const std::uint32_t c : words[g].leaves)
          for (std::uint32_t p = first[c]; p < first[c] + count[c]; ++p) ++times[p];
        ASSERT_EQ(times, std::vector<int>(set.size(), 1)) << "group " << g;
      }
    }
  }
}

TEST(Walk, ErrorScalesFollowTheLeastAcceleration) {
  testing::TreeSet t(testing::plummer_set(2000, 9), 32, 0);
  VectorArray acceleration("test.acceleration");
  std::vector<float> x(2000), zero(2000, 0.0f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::pow(10.0f, static_cast<float>(i % 7) - 3);
  const std::vector<float> y(x.rbegin(), x.rend());
  acceleration.z.upload(t.stream, zero);
  const auto& constant = acceleration;
  for (const float unit : {1.0f, 1e24f, 1e-24f}) {  // squares in these units are beyond single precision
    const auto in_unit = [unit](std::vector<float> values) {
      for (float& value : values) value *= unit;
      return values;
    };
    acceleration.x.upload(t.stream, in_unit(x));
    acceleration.y.upload(t.stream, in_unit(y));
    set_error_scales(t.stream, constant.view(), 2 * unit, t.groups);
    for (const Group& g : t.groups.download(t.stream)) {
      double least = 1e30;
      for (std::uint32_t p = g.first; p < g.first + g.count; ++p)
        least = std::min(least, std::hypot(double{x[p]}, double{y[p]}));
      EXPECT_NEAR(g.error_scale,
                  std::clamp(std::pow(2.0 / least, 0.2), double{kLeastErrorScale}, double{kMostErrorScale}), 1e-5);
    }
  }
  acceleration.x.upload(t.stream, zero);
  acceleration.y.upload(t.stream, zero);
  set_error_scales(t.stream, constant.view(), 2.0f, t.groups);
  for (const Group& g : t.groups.download(t.stream)) EXPECT_EQ(g.error_scale, kMostErrorScale);
}

TEST(Walk, WithACutoffNothingWithinReachIsMissing) {
  Walked w(testing::uniform_set(4000, 5), {.theta = 0.5f, .r_cut = 0.11f}, kPeriodicMinLevel);
  const auto sorted = w.particles.source.download(w.stream);
  const auto groups = w.groups.download(w.stream);
  for (std::size_t g = 0; g < groups.size(); g += 5) {
    const auto covered = w.covered(g);
    ASSERT_TRUE(std::adjacent_find(covered.begin(), covered.end()) == covered.end());
    const std::set<std::uint32_t> listed(covered.begin(), covered.end());
    EXPECT_LT(listed.size(), sorted.size());
    for (std::uint32_t p = 0; p < sorted.size(); ++p) {
      double d2 = 0;
      const float h[3] = {groups[g].hx, groups[g].hy, groups[g].hz};
      const float d[3] = {separation(sorted[p].x, groups[g].x), separation(sorted[p].y, groups[g].y),
                          separation(sorted[p].z, groups[g].z)};
      for (int a = 0; a < 3; ++a) d2 += std::pow(std::max(0.0f, std::abs(d[a]) - h[a]), 2);
      if (d2 < 0.1099 * 0.1099) {
        EXPECT_TRUE(listed.count(p)) << "particle " << p << " of group " << g;
      }
    }
  }
}

// A walk that nobody has waited for, with no room for lists at first and in appending: whole after finish_walk(), and
// so at once another time. Until then lists without room are empty, and the others good.
TEST(Walk, QueuedListsAreThoseOfAWalkThatIsWaitedFor) {
  WalkOptions options;
  const Walked known(testing::clustered_set(3000, 8), options, 0);
  Walked w(testing::clustered_set(3000, 8), options, 0);
  const std::uint32_t n = w.group_count();
  test::OnDevice selected(std::vector<std::uint32_t>{3, 5});
  Results results("test.results");
  const auto whole = [&](const WalkRequest& request, bool at_once_for_sure) {
    QueuedWalk walk = queue_walk(w.stream, w.tree, options, request, w.lists, results);
    results.fetch(w.stream);
    const std::vector<ListRange> early = w.lists.ranges.download(w.stream);
    const bool at_once = finish_walk(w.stream, w.tree, options, walk, w.lists, results);
    EXPECT_TRUE(at_once || !at_once_for_sure);
    const std::vector<ListRange> late = w.lists.ranges.download(w.stream);
    for (const std::uint32_t g : {3u, 5u}) {
      const std::uint32_t words = early[g].cells + early[g].leaves;
      EXPECT_TRUE(words == late[g].cells + late[g].leaves || (words == 0 && !at_once));
    }
    for (std::uint32_t g = 0; g < n; ++g) EXPECT_EQ(w.covered(g), known.covered(g));
    EXPECT_EQ(w.lists.used, w.lists.words.size());
  };
  w.lists = InteractionLists{};
  whole(w.all_groups(), false);
  whole(w.all_groups(), true);
  w.lists.words.resize(w.lists.used);
  const std::uint64_t used = w.lists.used;
  for (int k = 0; k < 40; ++k) whole({w.groups.data(), n, selected.data(), 0, 2, true}, false);  // beyond the room
  EXPECT_GT(w.lists.used, used);
}

// Lists that are counted later are counted as those that are waited for, and sums of two calls add up.
TEST(Walk, StatisticsThatNobodyWaitsForAreTheSame) {
  Walked w(testing::uniform_set(3000, 8, 0.25, 0.75), {}, 0);
  const ListView view = w.view(w.lists);
  const ListStatistics once = list_statistics(w.stream, w.tree, view);
  Results results("test.results");
  const auto later = results.make<ListStatistics>(w.stream);
  add_list_statistics(w.stream, w.tree, view, later.place);
  add_list_statistics(w.stream, w.tree, view, later.place);
  results.fetch(w.stream);
  EXPECT_EQ(results[later].particle_pairs, 2 * once.particle_pairs);
  EXPECT_EQ(results[later].words, 2 * once.words);
  EXPECT_EQ(results[later].longest, once.longest);
  EXPECT_EQ(results[later].members, 2 * once.members);
}

// Every second group alone, then all: lists that were not asked for stay as they are.
TEST(Walk, ReopenedListsAreNotStaleAndHoldEveryParticleOnce) {
  WalkOptions options;
  Walked w(testing::clustered_set(4000, 8), options, 0);
  auto moved = w.particles.source.download(w.stream);
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i].x += static_cast<std::uint32_t>((i % 5) << 26);
  w.move_to(moved);
  const StaleCriterion criterion{options.rule(), 0.1f, StaleCells::kDivisible};
  std::vector<std::uint32_t> even;
  for (std::uint32_t g = 0; g < w.group_count(); g += 2) even.push_back(g);
  DeviceBuffer<std::uint32_t> stale("stale");
  test::OnDevice which(even);
  const auto before = testing::words_of(w.stream, w.lists);
  for (const bool all : {false, true}) {
    const auto view = [&] {
      ListView lists = w.view(w.lists);
      if (!all) lists.selected = which.data(), lists.count = static_cast<std::uint32_t>(which.size());
      return lists;
    };
    ASSERT_GT(find_stale_groups(w.stream, w.tree, criterion, view(), stale), 10u);
    reopen_lists(w.stream, w.tree, {options, criterion.margin, view()}, w.lists);
    EXPECT_EQ(find_stale_groups(w.stream, w.tree, criterion, view(), stale), 0u);
    const auto now = testing::words_of(w.stream, w.lists);
    for (std::uint32_t g = 0; g < w.group_count(); ++g) {
      if (!all && g % 2 == 1) {
        EXPECT_EQ(now[g], before[g]);
      }
      const auto covered = w.covered(g);
      ASSERT_EQ(covered.size(), moved.size());
      for (std::uint32_t p = 0; p < covered.size(); ++p) ASSERT_EQ(covered[p], p);
    }
  }
}

}  // namespace
}  // namespace maki
