// The interaction lists of all groups over one tree, local or imported: made, kept and repaired.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"

namespace maki {

class KeptLists {
 public:
  // Lists of all groups by a fresh walk. `budget` (bytes, 0: none) bounds the room that is foreseen, not what they
  // take.
  void make(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
            std::size_t budget);
  // Groups whose lists no longer satisfy the opening criterion, by cells that a new walk can divide, are walked again;
  // gives how many. The lists are good if finish_repair() says so, which is due when `results` have been fetched; where
  // it says no they are good now, and are to be evaluated again.
  std::uint32_t repair(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
                       Results& results);
  bool finish_repair(const Stream& stream, Octree& tree, const WalkOptions& walk, Results& results);
  // How many groups have come so near to a closed cell of an imported tree that only a new import can help.
  std::uint32_t outgrown(const Stream& stream, Octree& tree, const WalkOptions& walk,
                         const DeviceBuffer<Group>& groups) const;
  // How many groups' lists fit the budget, judged by a sample walked for the purpose; all of them without a budget.
  std::uint32_t batch_within(const Stream& stream, Octree& tree, const WalkOptions& walk,
                             const DeviceBuffer<Group>& groups, std::size_t budget);
  // Lists of groups [begin, begin + count) alone, for use at once.
  ListView make_batch(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
                      std::uint32_t begin, std::uint32_t count);

  // Groups [begin, begin + count) of all.
  ListView view(const DeviceBuffer<Group>& groups, std::uint32_t begin, std::uint32_t count) const;
  ListView view(const DeviceBuffer<Group>& groups) const {
    return view(groups, 0, static_cast<std::uint32_t>(groups.size()));
  }

  void release() { lists_.words.release(); }  // what is known of their length stays
  std::size_t bytes() const { return lists_.used * sizeof(std::uint32_t); }
  std::uint64_t take_redone();  // groups walked twice because room was short, since the last call

 private:
  struct Repair {
    DeviceBuffer<std::uint32_t> stale{"lists.stale"};  // the groups
    std::uint64_t before = 0;                          // words in use
    double mean = 0;                                   // words of a list
    QueuedWalk walk;
  };

  InteractionLists lists_;
  std::optional<Repair> repair_;   // not finished
  std::uint64_t fresh_words_ = 0;  // of all lists as they were last made
  double longer_ = 0;              // expected words of a list that is walked again, over their mean
};

}  // namespace maki
