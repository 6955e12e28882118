// The interaction lists of all groups over one tree, local or imported: made, kept and repaired.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/force/force.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"

namespace maki {

class KeptLists {
 public:
  // Room for lists over what they take when they are made: lists that are walked again leave gaps behind.
  static constexpr double kRoom = 1.6;

  // Lists of all groups by a fresh walk. `budget` (bytes, 0: no limit) bounds the memory reserved beforehand, not the
  // final length of the lists.
  void make(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
            std::size_t budget);
  // Queues new walks of groups whose lists violate the opening criterion by cells that a walk can divide; returns the
  // number of groups walked. finish_repair() has to follow once `results` are fetched. It returns false where the room
  // was too short: then it has completed the lists, and forces from them have to be evaluated again.
  std::uint32_t repair(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
                       Results& results);
  bool finish_repair(const Stream& stream, Octree& tree, const WalkOptions& walk, Results& results);
  // Queues the opening of cells that violate the opening criterion, in the lists of the groups `which` (null: of all).
  // finish_reopened() has to follow once `results` are fetched. It returns false as finish_repair() does.
  void reopen(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
              const DeviceBuffer<std::uint32_t>* which, Results& results);
  bool finish_reopened(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
                       Results& results);
  // Number of groups that violate the opening criterion by a closed cell of an imported tree: only a new import helps.
  std::uint32_t outgrown(const Stream& stream, Octree& tree, const WalkOptions& walk,
                         const DeviceBuffer<Group>& groups) const;
  // Number of groups whose lists fit `budget` (bytes; 0: no limit, all groups), estimated from a walk of a sample.
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

  void release() { lists_.words.release(); }  // the length of the lists is remembered
  std::size_t bytes() const { return lists_.used * sizeof(std::uint32_t); }
  std::uint64_t take_redone();  // groups walked twice because room was short, since the last call

 private:
  struct Repair {
    DeviceBuffer<std::uint32_t> stale{"lists.stale"};  // the groups
    std::uint64_t before = 0;                          // words in use before the repair
    double mean = 0;                                   // words of a list, on average
    QueuedWalk walk;
  };

  InteractionLists lists_;
  std::optional<Repair> repair_;                // queued, not finished
  std::vector<Result<ReopenRecord>> reopened_;  // the same
  std::uint64_t fresh_words_ = 0;               // words of all lists after the last make()
  double longer_ = 0;                           // expected length of a list that is walked again over the mean length
};

// A tree whose sources act on this rank's groups, and the lists over it.

class TreeImports;

struct Sources {
  Octree& tree;
  SourceView view;
  KeptLists& lists;
  TreeImports* imports = nullptr;  // where the tree came from; null: the tree of own particles
  // Forces of imported trees are added to those of the own tree.
  bool imported() const { return imports != nullptr; }
};

}  // namespace maki
