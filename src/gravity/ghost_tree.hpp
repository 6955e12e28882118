// A tree whose forces do not depend on how particles are divided among ranks and sites.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/force/force.hpp"
#include "kernels/particles/joined_sources.hpp"
#include "kernels/tree/octree.hpp"
#include "src/gravity/gravity.hpp"

namespace maki {

// Over a rank's own particles and the ghosts around them: those of others in all cells of one level that own particles'
// lists may meet (host/let/whole_cells.hpp). There every cell is whole, and cells above that level serve no list as
// multipoles; so cells, groups, lists and forces are, bit for bit, those of one tree over all particles, of which this
// is a part. A group with own particles and ghosts is evaluated by all who have a part in it.
//
// While ghosts are on their way, inner groups can be evaluated: those that no ghost acts on.
//
// In bytes an own particle or ghost, beside tree, groups and lists: 32 (36 with potentials), and 20 more at a rebuild.
class GhostTree {
 public:
  // Reads ghost_level, leaf_size, group_size.
  explicit GhostTree(const GravityOptions& options) : options_(options) {}

  // Ghosts as they came, from some or from others: device memory.
  using Ghosts = std::vector<std::span<const SourceParticle>>;

  // Anew, where no particle has moved since ghosts were selected, of at least one own particle; clear() where there is
  // none. `groups`: those with own particles.
  void clear() { *this = GhostTree(options_); }
  void join(const Stream& stream, const SourceParticle* own, std::size_t count, const Ghosts& ghosts);
  void build(const Stream& stream, DeviceBuffer<Group>& groups);
  // Once there are lists over these groups: which are inner ones.
  void split(const Stream& stream, const ListView& lists);
  bool has_ghosts() const { return sources_.has_others(); }
  const DeviceBuffer<std::uint32_t>& inner() const { return inner_; }
  const DeviceBuffer<std::uint32_t>& outer() const { return outer_; }

  // The same sources have moved: own ones first, then ghosts. Afterwards the cells without ghosts, then all, and the
  // groups of them, are as they have to be.
  void refit_own(const Stream& stream, const SourceParticle* own, DeviceBuffer<Group>& groups);
  void refit_ghosts(const Stream& stream, const Ghosts& ghosts, DeviceBuffer<Group>& groups);

  Octree& tree() { return tree_; }
  SourceView view() const { return {sources_.data(), tree_.moments.data(), tree_.first.data(), tree_.count.data()}; }
  // By group: which own particles are in it.
  const DeviceBuffer<Group>& own_groups() const { return own_groups_; }

  // Where forces on own particles and ghosts go, and what own particles get of them.
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

}  // namespace maki
