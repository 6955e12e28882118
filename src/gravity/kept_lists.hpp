// The interaction lists of all groups over one tree, local or imported: construction, reuse, repair, and probes of
// their error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/force/force.hpp"
#include "kernels/measure/reductions.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"

namespace maki {

class KeptLists {
 public:
  // Memory reserved for kept lists over the size of fresh ones: lists that are walked again leave gaps.
  static constexpr double kRoom = 1.6;

  // Lists of all groups by a fresh walk. `budget` (bytes, 0: no limit) bounds the memory reserved beforehand, not the
  // final length of the lists.
  void make(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
            std::size_t budget);
  // Queues new walks of the stale groups: those with a multipole, which a walk can divide, too near for the opening
  // criterion. Returns the number of groups walked. finish_repair() has to follow once `results` are fetched. It
  // returns false where memory was too small: it has then completed the lists, and their forces have to be evaluated
  // again.
  std::uint32_t repair(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
                       Results& results);
  bool finish_repair(const Stream& stream, Octree& tree, const WalkOptions& walk, Results& results);
  // Instead of new walks: queues the opening of cells that have come too near (reopen_lists()), in the lists of the
  // groups `which` (null: of all). finish_reopened() has to follow once `results` are fetched. It returns false as
  // finish_repair() does.
  void reopen(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
              const DeviceBuffer<std::uint32_t>* which, Results& results);
  bool finish_reopened(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
                       Results& results);
  // Number of groups that are too near to a closed cell of an imported tree, which only a new import can open.
  std::uint32_t outgrown(const Stream& stream, Octree& tree, const WalkOptions& walk,
                         const DeviceBuffer<Group>& groups) const;
  // Number of groups whose lists fit `budget` (bytes; 0: no limit, all groups), estimated from a walk of a sample.
  std::uint32_t batch_within(const Stream& stream, Octree& tree, const WalkOptions& walk,
                             const DeviceBuffer<Group>& groups, std::size_t budget);
  // Lists of groups [begin, begin + count) only, for immediate use.
  ListView make_batch(const Stream& stream, Octree& tree, const WalkOptions& walk, const DeviceBuffer<Group>& groups,
                      std::uint32_t begin, std::uint32_t count);

  // Groups [begin, begin + count) of all.
  ListView view(const DeviceBuffer<Group>& groups, std::uint32_t begin, std::uint32_t count) const;
  ListView view(const DeviceBuffer<Group>& groups) const {
    return view(groups, 0, static_cast<std::uint32_t>(groups.size()));
  }

  void release() { lists_.words.release(); }  // the expected length stays, for the next make()
  void forget_length() { fresh_words_ = 0, lists_.words_a_group = 0; }
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
  std::vector<Result<ReopenRecord>> reopened_;  // queued, not finished
  std::uint64_t fresh_words_ = 0;               // words of all lists after the last make()
  double longer_ = 0;                           // expected length of a list that is walked again, over the mean
};

class TreeImports;

// A tree whose sources act on this rank's groups, and the lists over it.
struct Sources {
  Octree& tree;
  SourceView view;
  KeptLists& lists;
  TreeImports* imports = nullptr;  // where the tree came from; null: the tree of own particles
  // Forces of imported trees are added to those of the own tree.
  bool imported() const { return imports != nullptr; }
};

// Opening angle of the strict walk, which is the reference for errors, over that of the run.
inline constexpr double kStrictTheta = 0.4;

// Measures the error of kept lists. A sample of the groups is walked twice more: as for new lists (fresh), and with a
// much smaller opening angle as the reference (strict). Errors of kept and of fresh lists are those of the same groups
// at the same time, so that their ratio has little scatter. The sample stays the same between two rebuilds.
class ListProbes {
 public:
  // Picks about 0.1 % of the groups, at least 48 (or all), spread over the whole set. `group_size`: the largest number
  // of members of a group.
  void choose(const Stream& stream, const DeviceBuffer<Group>& groups, std::uint32_t group_size);

  // Drops the sample; to be called where its groups no longer exist or their lists are not kept.
  void clear() { indices_.resize(0); }

  // Copies the members of the sample at their present positions; later changes of groups and particles do not matter.
  void gather(const Stream& stream, const DeviceBuffer<Group>& groups, const SourceParticle* particles);
  // Queues the sample's forces over one tree, by fresh lists and by strict ones; forces of imported trees are added.
  // Valid if finish() returns true after `results` have been fetched.
  struct Walks {
    WalkOptions fresh, strict;
  };
  void evaluate(const Stream& stream, const Sources& sources, const Walks& walks, const ForceLaw& law, bool quadrupoles,
                Results& results);

  // Writes the differences of `acceleration` and of fresh forces from the strict ones to *error (device memory).
  void compare(const Stream& stream, const DeviceBuffer<Group>& groups, ConstVectorView acceleration,
               SampleError* error) const;

  // False: lists had too little memory and have been enlarged; repeat everything from gather() on.
  bool finish(const Stream& stream, Results& results);

  bool empty() const { return indices_.empty(); }

 private:
  DeviceBuffer<std::uint32_t> indices_{"probes.groups"};
  DeviceBuffer<std::uint32_t> offsets_{"probes.groups"};  // of each probe's particles in the arrays below
  DeviceBuffer<Group> groups_{"probes.groups"};           // the sample, as ranges of particles_
  DeviceBuffer<SourceParticle> particles_{"probes.particles"};
  struct Walk {
    Octree* tree = nullptr;
    WalkOptions options;
    InteractionLists lists;
    QueuedWalk queued;
  };
  // Packed forces on the sample, and their walks, one for each tree, whose memory is reused.
  struct Forces {
    explicit Forces(const char* name) : acceleration(name) {}
    VectorArray acceleration;
    std::vector<Walk> walks;
    std::size_t queued = 0;  // walks queued since gather() and not finished
  };
  void queue(const Stream& stream, const Sources& sources, const WalkOptions& options, Results& results,
             Forces& forces);
  ListView lists_of(const Walk& walk) const;
  bool finish(const Stream& stream, Results& results, Forces& forces);
  Forces fresh_{"probes.fresh"}, strict_{"probes.strict"};
};

}  // namespace maki
