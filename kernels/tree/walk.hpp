// Interaction lists: for each group, the cells that serve as multipoles and the leaves taken particle by particle.
// Walks make them; kept lists are checked, and cells that have come near are opened.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/device/buffer.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/opening.hpp"

namespace maki {

// A cell serves as a multipole when the distance from the group's box to its centre of mass exceeds the opening
// distance (opening.hpp). Cells whose box is farther than r_cut (sides) from the group's box are left out; r_cut = 0:
// no cutoff.
struct WalkOptions {
  float theta = 0.5f;
  float reference_acceleration = 0;  // mass / side^2 (opening.hpp): cells open by estimated error; 0: by angle
  float r_cut = 0;
  std::uint32_t small_cell = 6;  // cells of at most so many particles go particle by particle: a quadrupole costs four
  // Makes the order of a list's words independent of cells that the list does not name, as it always is on the CPU. A
  // GPU then walks four groups a warp instead of one.
  bool one_by_one = false;

  OpeningRule rule() const {
    const float reach = r_cut * kSideInUnits, inverse_theta = 1.0f / theta * kSideInUnits;
    const float reach_squared = r_cut > 0 ? reach * reach : std::numeric_limits<float>::max();
    const float least = kLeastDistance * kSideInUnits;
    if (reference_acceleration == 0) return {std::max(inverse_theta, least), reach_squared, 0};
    return {least, reach_squared, inverse_theta * std::pow(kErrorFactor / 8 / reference_acceleration, 0.2f)};
  }
};

// The groups to walk for.
struct WalkRequest {
  const Group* groups;
  std::uint32_t group_count;      // of all groups: the length of `ranges`
  const std::uint32_t* selected;  // device; nullptr: all of [begin, begin + count)
  std::uint32_t begin, count;
  bool append = false;  // keeps all other lists (walk_tree())
};

// Lists of all groups, in one array of words. Device memory; `ranges[g]` is the place of group g's list.
struct InteractionLists {
  DeviceBuffer<ListRange> ranges{"lists.ranges"};
  DeviceBuffer<std::uint32_t> words{"lists.words"};
  std::uint64_t used = 0;    // words in use; a rewalked group's old list remains as a gap
  std::uint64_t redone = 0;  // groups walked again for lack of room; adds up until the owner sets it to 0

  // Estimates for the next walk, so that a steady run has room at once.
  double words_a_group = 0;   // mean of the last walk that did not append
  std::uint32_t scratch = 0;  // of the longest walk so far: steps of a group on the GPU, words of a group on the CPU

  // Room for `wanted` words in all; keeps those in use.
  void reserve(const Stream& stream, std::uint64_t wanted);
  // First and last step of every walk_tree(): begin_walk() drops the old lists, unless it appends, and reserves the
  // expected room; end_walk() records `total`, the words then in use.
  void begin_walk(const Stream& stream, const WalkRequest& request);
  void end_walk(const WalkRequest& request, std::uint64_t total);
};

// For estimates: bytes a particle of the lists of groups of `group_size`, of a clustered set with a cutoff at `reach`
// mean distances of particles, and of an isolated set opened by `theta`. Lists of uniform sets hold all leaves within
// the cutoff of the group's box and a few cells beyond size / theta; clustering makes them three times as long. Those
// of isolated sets grow as theta^-1.35 (Groen et al. 2011, eq. 4).
double cutoff_list_bytes(double reach, double group_size);
double isolated_list_bytes(double theta, double group_size);
// For estimates: temporary bytes of a first walk of all groups of so many particles, before the lists' lengths are
// known; 0 on the CPU, where they are few.
double walk_bytes(double particles);

// Walks the tree for every group of [begin, end) (or for the `count` groups named in `selected`). Replaces all lists
// where `append` is false, else adds words after those in use and redirects the ranges of these groups. The order of
// words within a list is fixed; the place of a list in `words` is not.
void walk_tree(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
               InteractionLists& lists);

// A walk's report from the device to the host.
struct WalkRecord {
  unsigned long long words;    // of all these groups' lists
  unsigned long long missing;  // words of the groups whose lists had no room
  unsigned refused;            // number of those groups
  unsigned redone;             // groups walked twice: their steps did not fit the slice
  unsigned longest;            // steps of one group
};

// A walk whose host does not know yet whether all lists had room. Lists without room are empty.
struct QueuedWalk {
  WalkRequest request{};
  DeviceBuffer<std::uint32_t> refused{"lists.scratch"};  // groups whose lists had no room
  Result<WalkRecord> record;
};

// walk_tree() in two parts. queue_walk() does not wait; kernels queued on the same stream may use the lists at once.
// finish_walk(), called after `results` were fetched and before the next walk into these lists, returns whether all
// lists were complete. If not, it completes them (and reserves as much for the next time), and work that used them must
// be repeated. `request.selected` must stay valid until then.
QueuedWalk queue_walk(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
                      InteractionLists& lists, Results& results);
bool finish_walk(const Stream& stream, Octree& tree, const WalkOptions& options, QueuedWalk& walk,
                 InteractionLists& lists, Results& results);

// The multipoles of a list to check.
enum class StaleCells {
  kAll,
  kDivisible,  // those that a new walk may open
  kClosed,     // those of imported trees that only a new import can open
};

// A kept list is stale where one of its multipoles (of those that `cells` selects) violates the opening criterion by
// more than `margin`: its distance is below (1 - margin) times the opening distance.
struct StaleCriterion {
  OpeningRule rule;
  float margin;
  StaleCells cells = StaleCells::kAll;

  // Whether a cell with this count is one of `cells`.
  MAKI_HD bool looks_at(std::uint32_t count) const {
    return cells == StaleCells::kAll || (count == kClosedCell) == (cells == StaleCells::kClosed);
  }
  // Whether cell c, a multipole of the target's list, violates the opening criterion.
  MAKI_HD bool has_come_near(const WalkTarget& t, const CellGeometryView& g, std::uint32_t c) const {
    const float allowed = rounded_product(opening_distance(rule, t, g.size_of(c)), 1.0f - margin);
    return g.centre_gap_squared(t, c) < rounded_product(allowed, allowed);
  }
};

// Flags groups whose kept lists are stale: 1, else 0, by place in the view.
void flag_stale_groups(const Stream& stream, Octree& tree, const StaleCriterion& criterion, const ListView& lists,
                       std::uint32_t* flags);
// Finds stale groups: writes their places in the view (group indices where it selects none) to `stale`, ascending, and
// returns their number.
std::uint32_t find_stale_groups(const Stream& stream, Octree& tree, const StaleCriterion& criterion,
                                const ListView& lists, DeviceBuffer<std::uint32_t>& stale);

// Kept lists in which cells are opened.
struct Reopening {
  const WalkOptions& options;
  float margin;   // by which a cell is too near
  ListView view;  // of the lists
};
// Opens the divisible cells that have come near: the descendants that a walk without a cutoff would take replace them.
// Unlike a new walk this visits only the kept list's cells and their descendants, so it needs no particles beyond its
// reach. Words are added after those in use.
void reopen_lists(const Stream& stream, Octree& tree, Reopening what, InteractionLists& lists);

// queue_reopen() and finish_reopen(): reopen_lists() without waiting. Lists without room stay unchanged. *record gets
// the words that all reopened lists need. `before`: the record of an earlier call that the host has not finished yet,
// or null.
struct ReopenRecord {
  std::uint64_t words;
};
void queue_reopen(const Stream& stream, Octree& tree, const Reopening& what, InteractionLists& lists,
                  const ReopenRecord* before, ReopenRecord* record);
// Takes the record on the host, in the order of the calls. Returns whether all lists had room.
bool finish_reopen(const ReopenRecord& record, InteractionLists& lists);

// Sums over lists: the sources (particles and cells) of each group times its members.
struct ListStatistics {
  std::uint64_t particle_pairs = 0;  // particle-particle interactions
  std::uint64_t cell_pairs = 0;      // particle-cell interactions
  std::uint64_t words = 0;
  std::uint64_t longest = 0;  // sources of one group
  std::uint64_t members = 0;  // particles in groups
  bool operator==(const ListStatistics&) const = default;

  // A group of `targets` members, whose leaves hold `particles`.
  MAKI_HD void add(std::uint64_t particles, const ListRange& range, std::uint32_t targets) {
    const std::uint64_t sources = particles + range.cells;
    particle_pairs += particles * targets;
    cell_pairs += static_cast<std::uint64_t>(range.cells) * targets;
    words += static_cast<std::uint64_t>(range.cells) + range.leaves;
    longest = longest > sources ? longest : sources;
    members += targets;
  }
  MAKI_HD void add(const ListStatistics& other) {
    particle_pairs += other.particle_pairs;
    cell_pairs += other.cell_pairs;
    words += other.words;
    longest = longest > other.longest ? longest : other.longest;
    members += other.members;
  }
};
ListStatistics list_statistics(const Stream& stream, const Octree& tree, const ListView& lists);
// Adds the statistics to *total in device memory: nobody waits.
void add_list_statistics(const Stream& stream, const Octree& tree, const ListView& lists, ListStatistics* total);

}  // namespace maki
