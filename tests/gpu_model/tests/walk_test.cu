// The GPU's walk against the walk of one group on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/tree/walk_cuda.cuh"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/on_device.hpp"

namespace maki {
namespace {

using testing::ListWords;
using testing::TreeSet;
using testing::words_of;

WalkOptions options_of(float theta, float r_cut = 0) { return {.theta = theta, .r_cut = r_cut}; }

std::vector<ListWords> sorted(std::vector<ListWords> lists) {
  for (ListWords& list : lists) {
    std::sort(list.cells.begin(), list.cells.end());
    std::sort(list.leaves.begin(), list.leaves.end());
  }
  return lists;
}

// The geometry of a tree's cells, in the host's memory.
struct HostCells {
  std::vector<std::vector<std::uint32_t>> places;
  std::vector<std::vector<float>> lengths;
  std::vector<std::uint32_t> count, first_child;
  std::vector<std::uint8_t> child_count;

  explicit HostCells(TreeSet& t)
      : count(t.tree.count.download(t.stream)), first_child(t.tree.first_child.download(t.stream)),
        child_count(t.tree.child_count.download(t.stream)) {
    const CellGeometryView g = t.tree.geometry.view();
    const auto copy = [&](const auto* from, auto& all) {
      all.emplace_back(t.tree.cells);
      copy_to_host(t.stream, all.back().data(), from, t.tree.cells * sizeof(*from));
    };
    for (const auto* a : {g.comx, g.comy, g.comz, g.x, g.y, g.z}) copy(a, places);
    for (const auto* a : {g.hx, g.hy, g.hz, g.size, g.offset}) copy(a, lengths);
    if (g.error_length) copy(g.error_length, lengths);
  }
  WalkTree view(const WalkOptions& o) {
    return {{nullptr, count.data(), first_child.data(), child_count.data()},
            {places[0].data(), places[1].data(), places[2].data(), places[3].data(), places[4].data(), places[5].data(),
             lengths[0].data(), lengths[1].data(), lengths[2].data(), lengths[3].data(), lengths[4].data(),
             lengths.size() > 5 ? lengths[5].data() : nullptr},
            o.rule(),
            o.r_cut > 0,
            o.small_cell};
  }
};

// In the CPU's order, which does not depend on cells that no list names.
std::vector<ListWords> lists_in_order(TreeSet& t, const WalkOptions& options) {
  HostCells cells(t);
  std::vector<ListWords> lists;
  for (const Group& group : t.groups.download(t.stream))
    lists.push_back(testing::list_of(scalar::walk_group, cells.view(options), group, t.tree.cells + 8));
  return lists;
}

std::vector<ListWords> expected_lists(TreeSet& t, const WalkOptions& options) {
  return sorted(lists_in_order(t, options));
}

void expect_right_lists(TreeSet& t, const WalkOptions& options) {
  InteractionLists lists;
  walk_tree(t.stream, t.tree, options, t.all_groups(), lists);
  const auto expected = expected_lists(t, options);
  EXPECT_EQ(sorted(words_of(t.stream, lists)), expected);
  std::uint64_t words = 0;
  for (const ListWords& list : expected) words += list.cells.size() + list.leaves.size();
  EXPECT_EQ(lists.used, words);  // without gaps
}

TEST(WalkKernel, ListsForEveryGroupSize) {
  for (const std::uint32_t size : {1u, 2u, 31u, 32u, 33u, 64u, 128u, 256u, 2048u}) {
    SCOPED_TRACE(size);
    const std::size_t n = size < 31 ? 150 : size < 256 ? 700 : 2500;
    TreeSet plummer(testing::plummer_set(n, size), size, 0);
    expect_right_lists(plummer, options_of(0.7f));
    TreeSet periodic(testing::uniform_set(n, size), size, kPeriodicMinLevel);
    expect_right_lists(periodic, options_of(0.5f, 0.12f));
  }
}

// Seven of eight siblings wait at every level while the last is opened, down to the deepest level: the most octets that
// a queue has to hold.
std::vector<SourceParticle> deep_set() {
  std::vector<SourceParticle> set;
  for (int level = 1; level < kMortonLevels; ++level) {
    const std::uint32_t side = 1u << (32 - level), corner = 0u - 2 * side;  // of the last cell of the level above
    for (std::uint32_t sibling = 0; sibling < 7; ++sibling)
      for (const std::uint32_t inside : {side / 8, side / 8 * 7})
        set.push_back({corner + (sibling & 4 ? side : 0) + inside, corner + (sibling & 2 ? side : 0) + inside,
                       corner + (sibling & 1 ? side : 0) + inside, 1.0f});
  }
  return set;
}

// The CPU's lists, whatever room there is. Sums of forces are rounded in the order of the words: one by one they stand
// in that of the CPU. `small`: some groups are done in a step. How many did not fit a slice of 8.
std::uint64_t expect_right_in_every_room(TreeSet& t, WalkOptions options, bool small = false) {
  const auto in_order = lists_in_order(t, options), expected = sorted(in_order);
  const std::uint64_t groups = t.groups.size();
  const struct {
    cuda::WalkRoom room;
    std::uint64_t least, most;  // groups whose steps do not fit their slice
  } cases[] = {{{}, 0, 0},
               {{cuda::walk::kWideLimit, 8}, small ? 0u : 1u, groups},
               {{cuda::walk::kWideLimit, 1}, small ? 0u : groups, groups},
               {{5, 0}, 0, 0},
               {{0, 0}, 0, 0},
               {{0, 1}, small ? 0u : groups, groups}};
  std::uint64_t beyond_8 = 0;
  for (const bool one_by_one : {false, true})
    for (const auto& [room, least, most] : cases) {
      SCOPED_TRACE(::testing::Message() << "wide limit " << room.wide_limit << ", slice " << room.slice);
      options.one_by_one = one_by_one;
      InteractionLists lists;
      // The first walk finds no words at all, the second has room.
      for (const std::uint64_t refused : {groups, std::uint64_t{0}}) {
        lists.redone = 0;
        cuda::walk_tree(t.stream, t.tree, options, t.all_groups(), lists, room);
        const auto words = words_of(t.stream, lists);
        EXPECT_EQ(one_by_one ? words : sorted(words), one_by_one ? in_order : expected);
        EXPECT_GE(lists.redone, refused + least);
        EXPECT_LE(lists.redone, refused + most);
        if (room.slice == 8 && !one_by_one) beyond_8 = lists.redone;
      }
    }
  return beyond_8;
}

TEST(WalkKernel, EverySetInEveryRoom) {
  TreeSet clustered(testing::clustered_set(700, 12), 32, 0);
  EXPECT_LT(expect_right_in_every_room(clustered, options_of(0.6f)), clustered.groups.size());
  TreeSet fine(testing::clustered_set(700, 2), 32, 0, 4);
  expect_right_in_every_room(fine, options_of(1.0f));
  TreeSet uniform(testing::uniform_set(700, 3, 0.25, 0.75), 32, 0);
  expect_right_in_every_room(uniform, options_of(0.3f));
  TreeSet periodic(testing::clustered_set(900, 4), 64, kPeriodicMinLevel);
  expect_right_in_every_room(periodic, options_of(0.7f, 0.1f));
  open_coarse_cells(periodic.stream, kPeriodicMinLevel, periodic.tree);
  expect_right_in_every_room(periodic, options_of(0.3f, 0.05f));
  TreeSet plummer(testing::plummer_set(700, 5), 32, 0);
  expect_right_in_every_room(plummer, options_of(0.5f));
  plummer.know_errors();
  for (const float reference : {0.1f, 30.0f}) {
    WalkOptions by_error = options_of(0.7f);
    by_error.reference_acceleration = reference;
    expect_right_in_every_room(plummer, by_error);
  }
  TreeSet deep(deep_set(), 32, 0, 1);
  ASSERT_GE(deep.tree.level_begin.size(), static_cast<std::size_t>(kMortonLevels));
  expect_right_in_every_room(deep, options_of(0.05f));
}

TEST(WalkKernel, TreesOfOneParticleOneLeafAndOnePoint) {
  for (const std::size_t n : {1u, 2u, 8u, 9u}) {
    TreeSet few(testing::uniform_set(n, 7, 0.3, 0.7), 4, 0);
    expect_right_in_every_room(few, options_of(0.5f), true);
    TreeSet periodic(testing::uniform_set(n, 7), 4, kPeriodicMinLevel);
    expect_right_in_every_room(periodic, options_of(0.5f, 0.1f), true);
  }
  TreeSet one_leaf(testing::uniform_set(300, 8, 0.3, 0.7), 1, 0, 300);
  expect_right_in_every_room(one_leaf, options_of(0.5f), true);
  TreeSet point(std::vector<SourceParticle>(40, {0x80000000u, 0x80000001u, 0x7fffffffu, 1.0f}), 16, 0);
  expect_right_in_every_room(point, options_of(0.5f), true);
}

TEST(WalkKernel, NothingInReachIsAnEmptyList) {
  TreeSet t(testing::uniform_set(500, 9, 0.3, 0.4), 64, kPeriodicMinLevel);
  std::vector<Group> groups = t.groups.download(t.stream);
  for (std::size_t g = 0; g < groups.size(); g += 2) groups[g].x = groups[g].y = 0xe0000000u;  // far from all particles
  t.groups.upload(t.stream, groups);
  expect_right_in_every_room(t, options_of(0.5f, 0.01f), true);
  InteractionLists lists;
  walk_tree(t.stream, t.tree, options_of(0.5f, 0.01f), {t.groups.data(), t.group_count(), nullptr, 0, 1, false}, lists);
  EXPECT_EQ(lists.used, 0u);
  EXPECT_EQ(lists.ranges.download(t.stream)[0].cells + lists.ranges.download(t.stream)[0].leaves, 0u);
  walk_tree(t.stream, t.tree, options_of(0.5f), {t.groups.data(), t.group_count(), nullptr, 0, 0, false}, lists);
  EXPECT_EQ(lists.used, 0u);
}

TEST(WalkKernel, SelectedGroupsAreAppended) {
  TreeSet t(testing::clustered_set(1500, 8), 32, 0);
  const WalkOptions loose = options_of(0.9f), strict = options_of(0.5f);
  const auto before = expected_lists(t, loose), after = expected_lists(t, strict);
  InteractionLists lists;
  walk_tree(t.stream, t.tree, loose, t.all_groups(), lists);
  const std::vector<std::uint32_t> chosen{3, 17, 4, t.group_count() - 1};
  const test::OnDevice selected(chosen);
  const std::uint64_t used = lists.used, redone = lists.redone;
  walk_tree(t.stream, t.tree, strict, {t.groups.data(), t.group_count(), selected.data(), 0, 4, true}, lists);
  std::uint64_t added = 0;
  const auto now = sorted(words_of(t.stream, lists));
  for (std::size_t g = 0; g < now.size(); ++g) {
    const bool is_chosen = std::find(chosen.begin(), chosen.end(), g) != chosen.end();
    EXPECT_EQ(now[g], is_chosen ? after[g] : before[g]) << "group " << g;
    if (is_chosen) added += after[g].cells.size() + after[g].leaves.size();
  }
  EXPECT_EQ(lists.used, used + added);
  EXPECT_LE(lists.redone, redone + 4);
}

// Room for some of the appended lists, and not for all: those written stay, and the words in use are kept.
TEST(WalkKernel, AppendingWithoutRoomKeepsWhatIsThere) {
  TreeSet t(testing::clustered_set(1500, 8), 32, 0);
  const WalkOptions options = options_of(0.8f);
  InteractionLists lists;
  walk_tree(t.stream, t.tree, options, t.all_groups(), lists);
  DeviceBuffer<std::uint32_t> tight("lists.words", lists.used + 3 * lists.used / t.groups.size());
  copy_on_device(t.stream, tight.data(), lists.words.data(), lists.used * sizeof(std::uint32_t));
  lists.words.swap(tight);
  std::vector<std::uint32_t> chosen(t.groups.size() / 2);
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = static_cast<std::uint32_t>(2 * i);
  const test::OnDevice selected(chosen);
  lists.redone = 0;
  const auto count = static_cast<std::uint32_t>(chosen.size());
  walk_tree(t.stream, t.tree, options, {t.groups.data(), t.group_count(), selected.data(), 0, count, true}, lists);
  EXPECT_EQ(sorted(words_of(t.stream, lists)), expected_lists(t, options));
  EXPECT_GT(lists.redone, 0u);
  EXPECT_LT(lists.redone, count);  // some had room at once
}

TEST(WalkKernel, ASteadyWalkCostsOneSmallReadBackAndNoAllocation) {
  TreeSet t(testing::plummer_set(800, 21), 32, 0);
  InteractionLists lists;
  for (int k = 0; k < 2; ++k) walk_tree(t.stream, t.tree, options_of(0.8f), t.all_groups(), lists);
  lists.redone = 0;
  const std::uint64_t allocations = pool_report().system_allocations;
  reset_transfer_counters();
  walk_tree(t.stream, t.tree, options_of(0.8f), t.all_groups(), lists);
  EXPECT_LE(transfer_counters().to_host, 64u);
  EXPECT_EQ(transfer_counters().to_device, 0u);
  EXPECT_EQ(pool_report().system_allocations, allocations);
  EXPECT_EQ(lists.redone, 0u);
  lists.words.release();  // as a rebuild does: the room is foreseen
  walk_tree(t.stream, t.tree, options_of(0.8f), t.all_groups(), lists);
  EXPECT_EQ(lists.redone, 0u);
}

// As in an imported tree: what lies below some cells is not there.
TEST(WalkKernel, ClosedCellsAreMultipolesHoweverNear) {
  TreeSet t(testing::clustered_set(900, 6), 32, kPeriodicMinLevel);
  std::vector<std::uint32_t> count = t.tree.count.download(t.stream);
  std::vector<std::uint8_t> children = t.tree.child_count.download(t.stream);
  std::set<std::uint32_t> closed;
  for (std::uint32_t c = t.tree.level_begin[2]; c < t.tree.cells; c += 3) {
    closed.insert(c);
    count[c] = kClosedCell;
    children[c] = 0;
  }
  t.tree.count.upload(t.stream, count);
  t.tree.child_count.upload(t.stream, children);
  expect_right_lists(t, options_of(0.5f, 0.2f));
  expect_right_lists(t, options_of(0.8f));
  std::size_t seen = 0;
  for (const ListWords& list : expected_lists(t, options_of(0.8f))) {
    for (const std::uint32_t word : list.leaves) EXPECT_FALSE(closed.contains(word));
    for (const std::uint32_t word : list.cells) seen += closed.contains(word);
  }
  EXPECT_GT(seen, t.groups.size());
}

// Each launch draws another order.
TEST(WalkKernel, EveryOrderOfThreadsMakesTheSameLists) {
  TreeSet t(testing::clustered_set(500, 31), 32, kPeriodicMinLevel);
  const WalkOptions options = options_of(0.6f, 0.2f);
  std::vector<ListWords> first;
  for (unsigned n = 0; n < 20; ++n) {
    InteractionLists lists;
    cuda::walk_tree(t.stream, t.tree, options, t.all_groups(), lists, {cuda::walk::kWideLimit, n % 2 ? 4u : 0u});
    const auto words = words_of(t.stream, lists);  // in the order in which they stand
    if (first.empty()) first = words;
    ASSERT_EQ(words, first);
  }
  EXPECT_EQ(sorted(first), expected_lists(t, options));
}

}  // namespace
}  // namespace maki
