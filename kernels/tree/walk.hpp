// Interaction lists: for each group, the cells that serve as multipoles and the leaves taken particle by particle.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/device/results.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/opening.hpp"

namespace maki {

// A cell serves as a multipole when the distance from the group's box to its centre of mass exceeds
// size / theta + offset (opening.hpp). Cells whose box is farther than r_cut (sides) from the group's box are left out;
// r_cut = 0: none is.
struct WalkOptions {
  float theta = 0.5f;
  float r_cut = 0;
  std::uint32_t small_cell = 6;  // cells of at most this many are taken particle by particle: a quadrupole costs four
  // The words of a list stand in the same order whatever cells there are that it does not name. A GPU then walks four
  // groups a warp instead of one; the CPU's walk is always so.
  bool one_by_one = false;

  OpeningRule rule() const {
    const float reach = r_cut * kSideInUnits;
    return {1.0f / theta * kSideInUnits, r_cut > 0 ? reach * reach : std::numeric_limits<float>::max()};
  }
};

// For which groups to walk.
struct WalkRequest {
  const Group* groups;
  std::uint32_t group_count;      // of all groups: the length of `ranges`
  const std::uint32_t* selected;  // device; nullptr: all of [begin, begin + count)
  std::uint32_t begin, count;
  bool append = false;
};

// Lists of all groups, in one array of words. Device memory; `ranges[g]` says where group g's list stands.
struct InteractionLists {
  DeviceBuffer<ListRange> ranges{"lists.ranges"};
  DeviceBuffer<std::uint32_t> words{"lists.words"};
  std::uint64_t used = 0;    // words in use; a rewalked group's old list stays behind as a gap
  std::uint64_t redone = 0;  // groups walked again because room was short; adds up until the owner sets it to 0

  // What is known for the next walk, so that a steady run finds room at once.
  double words_a_group = 0;   // mean of the last walk that was no appending
  std::uint32_t scratch = 0;  // what the longest walk so far needed, in the backend's own measure

  // Room for `wanted` words in all, with those in use kept.
  void reserve(const Stream& stream, std::uint64_t wanted);
  // What every walk_tree does first and last: forgets the old lists unless they are appended to and makes the room that
  // is foreseen; takes note of `total`, the words then in use.
  void begin_walk(const Stream& stream, const WalkRequest& request);
  void end_walk(const WalkRequest& request, std::uint64_t total);
};

// Walks the tree for every group of [begin, end) (or for the `count` groups named in `selected`). Replaces all
// lists where `append` is false, else adds words behind those in use and redirects the ranges of these groups.
// The order of the words within a list is fixed; where the lists stand in `words` is not.
void walk_tree(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
               InteractionLists& lists);

// What a walk on the device tells the host.
struct WalkRecord {
  unsigned long long words;    // that all these groups want
  unsigned long long missing;  // those of groups that found no room
  unsigned refused;            // such groups
  unsigned redone;             // groups whose steps did not fit the slice
  unsigned longest;            // steps of one group
};

// A walk that the host has not heard of yet whether all lists found room. Those that did not are empty.
struct QueuedWalk {
  WalkRequest request{};
  DeviceBuffer<std::uint32_t> refused{"lists.scratch"};  // indices of such groups
  Result<WalkRecord> record;
};

// walk_tree() in two parts, with no wait in the first: lists are there for kernels on the same stream, and what they lead
// to is good if finish_walk() says so, which has to be called when `results` have been fetched and before these lists are
// walked for again. Where it says no, all lists are there now (with room for as many another time), and what has been
// made of them has to be made again. `request.selected` stays until then.
QueuedWalk queue_walk(const Stream& stream, Octree& tree, const WalkOptions& options, const WalkRequest& request,
                      InteractionLists& lists, Results& results);
bool finish_walk(const Stream& stream, Octree& tree, const WalkOptions& options, QueuedWalk& walk,
                 InteractionLists& lists, Results& results);

// Cell c, a multipole of the target's list, no longer satisfies the opening criterion by more than `margin`.
MAKI_HD bool has_come_near(const OpeningRule& rule, float margin, const WalkTarget& t, const CellGeometryView& g,
                           std::uint32_t c) {
  const float gap =
      point_gap_squared(t, axis_distance(g.comx[c], t.x), axis_distance(g.comy[c], t.y), axis_distance(g.comz[c], t.z));
  const float allowed = rounded_product(opening_distance(rule, g.size[c], g.offset[c]), 1.0f - margin);
  return gap < rounded_product(allowed, allowed);
}

// Which cells of a list are looked at: all, those that a new walk may divide, or closed ones of an imported tree, which
// only a new import can.
enum class StaleCells { kAll, kDivisible, kClosed };

MAKI_HD bool is_looked_at(StaleCells which, std::uint32_t count) {
  return which == StaleCells::kAll || (count == kClosedCell) == (which == StaleCells::kClosed);
}

// Groups whose kept list holds a cell that no longer satisfies the opening criterion by more than `margin`
// (distance < (1 - margin) (size / theta + offset)), because the cell or the group has grown or moved.
// Writes their indices to `stale`, ascending, and returns how many.
std::uint32_t find_stale_groups(const Stream& stream, Octree& tree, const WalkOptions& options, float margin,
                                const DeviceBuffer<Group>& groups, const InteractionLists& lists,
                                DeviceBuffer<std::uint32_t>& stale, StaleCells which = StaleCells::kAll);

// Sums over lists: sources (particles and cells) of each group times its members.
struct ListStatistics {
  std::uint64_t particle_pairs = 0;  // particle-particle interactions
  std::uint64_t cell_pairs = 0;      // particle-cell interactions
  std::uint64_t words = 0;
  std::uint64_t longest = 0;  // sources of one group
  std::uint64_t members = 0;  // particles in groups

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
// The same, added to *total, which is device memory: nobody waits.
void add_list_statistics(const Stream& stream, const Octree& tree, const ListView& lists, ListStatistics* total);

}  // namespace maki
