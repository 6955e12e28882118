// One tree of own particles and the ghosts around them: its forces do not depend on how particles are divided among
// ranks and sites.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/force/force.hpp"
#include "kernels/particles/joined_sources.hpp"
#include "kernels/tree/octree.hpp"
#include "src/gravity/gravity_options.hpp"
#include "src/gravity/source_trees.hpp"

namespace maki {

// A tree over a rank's own particles and the ghosts around them: particles of other ranks in all cells of one level
// that the lists of own particles may meet (host/let/local_essential_tree.hpp). Every such cell is complete, and no list takes
// cells above that level as multipoles; so cells, groups, lists and forces are, bit for bit, those of one tree over all
// particles. Every rank that owns some members of a group evaluates the group.
//
// Inner groups, on which no ghost acts, can be evaluated before ghosts arrive.
//
// Memory, beside tree, groups and lists: 32 bytes for each own particle or ghost (36 with potentials), 20 more at a
// rebuild.
class GhostTree {
 public:
  // Bytes of an own particle or a ghost, for estimates: as above with potentials, and its part of cells and groups.
  static constexpr double kBytes = 40;

  // Reads ghost_level, leaf_size, group_size.
  explicit GhostTree(const GravityOptions& options) : options_(options) {}

  // Ghosts in device memory, one array for each source of messages (ranks of this site, other sites).
  using Ghosts = std::vector<std::span<const SourceParticle>>;

  // A new tree: join(), then build(), with the positions for which ghosts were selected. A rank without own particles
  // calls clear() instead. `groups` receives the groups that hold own particles.
  void clear() { *this = GhostTree(options_); }
  void join(const Stream& stream, const SourceParticle* own, std::size_t count, const Ghosts& ghosts);
  void build(const Stream& stream, DeviceBuffer<Group>& groups);
  // Sorts the groups into inner and outer ones by their lists.
  void split(const Stream& stream, const ListView& lists);
  bool has_ghosts() const { return sources_.has_others(); }
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
