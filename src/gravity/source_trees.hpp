// The sources of a rank's forces: its own tree and the imported forests, or one tree of own particles and
// ghosts (GhostSources), whose forces do not depend on how particles are divided among ranks and sites. Chosen once in
// a run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/device/stream.hpp"
#include "kernels/force/force.hpp"
#include "kernels/particles/joined_sources.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/octree.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/kept_lists.hpp"
#include "src/gravity/list_forces.hpp"

namespace maki {

// The tree of a rank's own particles: the sort, the build, and new sweeps while the tree is kept.
class OwnTree {
 public:
  // Reads periodic, leaf_size, group_size and open_by_error of `options`, which have to outlive this.
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

// GhostSources where options.ghost_level > 0, else Forests. All arguments have to outlive the result.
std::unique_ptr<SourceTrees> make_source_trees(const GravityOptions& options, PhaseTimers& timers, OwnTree& own,
                                               const std::vector<TreeImports*>& imports, ListForces& forces);

// A tree over a rank's own particles and the ghosts around them: particles of other ranks in all cells of one level
// that the lists of own particles may meet (host/let/local_essential_tree.hpp). Every such cell is complete, and no
// list takes cells above that level as multipoles; so cells, groups, lists and forces are, bit for bit, those of one
// tree over all particles. Every rank that owns some members of a group evaluates the group.
//
// Inner groups, on which no ghost acts, can be evaluated before new positions of ghosts arrive.
//
// Memory, beside tree, groups and lists: 32 bytes for each own particle or ghost (36 with potentials), 20 more at a
// rebuild.
class GhostTree {
 public:
  // Bytes of an own particle or a ghost, for estimates: the 36 above, and its part of cells and groups.
  static constexpr double kBytes = 40;

  // Reads ghost_level, leaf_size, group_size.
  explicit GhostTree(const GravityOptions& options) : options_(options) {}

  // Ghosts in device memory: one array of those from other ranks of this site, one of those from other sites.
  using Ghosts = std::vector<std::span<const SourceParticle>>;

  // A new tree: join(), then build(), with the positions for which ghosts were selected. A rank without own particles
  // calls clear() instead. `groups` receives the groups that hold own particles.
  void clear() { *this = GhostTree(options_); }
  void join(const Stream& stream, const SourceParticle* own, std::size_t count, const Ghosts& ghosts);
  void build(const Stream& stream, DeviceBuffer<Group>& groups);
  // Sorts the groups into inner and outer ones by their lists.
  void split(const Stream& stream, const ListView& lists);
  const DeviceBuffer<std::uint32_t>& inner() const { return inner_; }
  const DeviceBuffer<std::uint32_t>& outer() const { return outer_; }

  // New positions of the same sources. After refit_own() cells without ghosts and their groups are up to date; after
  // refit_ghosts() all are.
  void refit_own(const Stream& stream, const SourceParticle* own, DeviceBuffer<Group>& groups);
  void refit_ghosts(const Stream& stream, const Ghosts& ghosts, DeviceBuffer<Group>& groups);

  Octree& tree() { return tree_; }
  SourceView view() const { return {sources_.data(), tree_.moments.data(), tree_.first.data(), tree_.count.data()}; }
  // The range of own particles in each group.
  const DeviceBuffer<Group>& own_groups() const { return own_groups_; }

  // output(): arrays for the forces on own particles and ghosts. give_back() copies those on own particles to `own`.
  ForceOutput output(bool want_potential);
  void give_back(const Stream& stream, const ForceOutput& own) const;

 private:
  std::span<const SourceParticle> gathered(const Stream& stream, const Ghosts& ghosts);

  GravityOptions options_;
  JoinedSources sources_;
  DeviceBuffer<SourceParticle> ghosts_{"ghosts.gathered"};
  Octree tree_;
  DeviceBuffer<Group> own_groups_{"ghosts.groups"};
  DeviceBuffer<std::uint8_t> cells_with_ghosts_{"ghosts.cells"};
  DeviceBuffer<std::uint32_t> inner_{"ghosts.inner"}, outer_{"ghosts.outer"};
  VectorArray acceleration_{"ghosts.acceleration"};
  DeviceBuffer<float> potential_{"ghosts.potential"};
};

// SourceTrees with one GhostTree.
class GhostSources final : public SourceTrees {
 public:
  GhostSources(const GravityOptions& options, PhaseTimers& timers, OwnTree& own,
               const std::vector<TreeImports*>& imports, ListForces& forces)
      : options_(options), timers_(timers), own_(own), imports_(imports), forces_(forces), ghosts_(options) {}

  void evaluate(const Stream& stream, const Particles& particles, bool fresh, const ForceOutput& out) override;
  void evaluate_again(const Stream& stream, const Particles& particles, const ForceOutput& out) override;
  std::vector<Sources> all(const Particles&) override { return {joined()}; }
  const DeviceBuffer<Group>& own_groups() const override { return ghosts_.own_groups(); }
  std::uint64_t unkept_lists() const override { return unkept_lists_; }

 private:
  Sources joined() { return {ghosts_.tree(), ghosts_.view(), forces_.own_lists()}; }
  void evaluate_new_tree(const Stream& stream, const Particles& particles, bool want_potential);
  void evaluate_kept_tree(const Stream& stream, const Particles& particles, bool want_potential);
  void send(const Stream& stream, const Particles& particles, bool fresh);
  GhostTree::Ghosts take(const Stream& stream);
  void split_groups(const Stream& stream);

  const GravityOptions& options_;
  PhaseTimers& timers_;
  OwnTree& own_;  // only to select the ghosts of others
  const std::vector<TreeImports*>& imports_;
  ListForces& forces_;
  GhostTree ghosts_;
  std::uint64_t unkept_lists_ = 0;
};

}  // namespace maki
