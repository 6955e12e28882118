// The sources of a rank's forces: its own tree and the imported forests, or one tree of own particles and
// ghosts (ghost_sources.hpp). Chosen once in a run.
#pragma once

#include <memory>
#include <vector>

#include "kernels/device/stream.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/octree.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/kept_lists.hpp"
#include "src/gravity/list_forces.hpp"

namespace maki {

// The tree of a rank's own particles: the sort, the build, and new sweeps while the tree is kept.
class OwnTree {
 public:
  // Reads periodic, leaf_size, group_size and open_by_error of `options`, which are referred to.
  OwnTree(const GravityOptions& options, PhaseTimers& timers) : options_(options), timers_(timers) {
    tree_.geometry.has_error_lengths = options.open_by_error;
  }

  // Puts the particles, and `carried` (may be null), into Morton order.
  void sort(const Stream& stream, Particles& particles, VectorArray* carried);
  // Builds and sweeps the tree of the sorted particles.
  void build(const Stream& stream, const Particles& particles);
  // Releases the keys of the sort where no tree will be built.
  void forget_order() { sorter_.release_keys(); }
  // Groups of the tree as built; none where there are no particles.
  void make_groups_of(const Stream& stream, const Particles& particles, DeviceBuffer<Group>& groups);
  // Sweeps the kept tree and refits its groups after particles have moved.
  void refit(const Stream& stream, const Particles& particles, DeviceBuffer<Group>& groups);

  Octree& octree() { return tree_; }
  SourceView view(const Particles& particles) const {
    return {particles.source.data(), tree_.moments.data(), tree_.first.data(), tree_.count.data()};
  }

 private:
  int min_level() const { return options_.periodic ? kPeriodicMinLevel : 0; }

  const GravityOptions& options_;
  PhaseTimers& timers_;
  MortonSorter sorter_;
  Octree tree_;
};

class SourceTrees {
 public:
  virtual ~SourceTrees() = default;

  // Short-range forces on own particles. Trees and groups are built (`fresh`: the particles have just been sorted) or
  // refitted, other ranks and sites are sent the trees that they need, and each tree is evaluated as it arrives.
  // Collective.
  virtual void evaluate(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out) = 0;

  // Repeats the evaluation from the present lists and trees, because memory for lists was short and some were not
  // evaluated.
  virtual void evaluate_again(const Stream& stream, const Particles& particles, const ForceOutput& out) = 0;

  // The trees of the last evaluation in the order of their evaluation; the tree of own particles is the first.
  virtual std::vector<Sources> all(const Particles& particles) = 0;
  // The range of own particles in each group.
  virtual const DeviceBuffer<Group>& own_groups() const = 0;
  // Number of evaluations so far whose lists should have been kept but exceeded the memory for lists.
  virtual std::uint64_t unkept_lists() const { return 0; }
};

// Sends parts of this rank's tree to other sites and ranks, to the furthest first.
void send_to_all(const std::vector<TreeImports*>& imports, const Stream& stream, OwnTree& own,
                 const Particles& particles, const WalkOptions& walk, bool fresh);

// GhostSources where options.ghost_level > 0, else Forests. All arguments have to outlive the result.
std::unique_ptr<SourceTrees> make_source_trees(const GravityOptions& options, PhaseTimers& timers, OwnTree& own,
                                               const std::vector<TreeImports*>& imports, ListForces& forces);

}  // namespace maki
