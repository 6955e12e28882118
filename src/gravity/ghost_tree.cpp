#include "src/gravity/ghost_tree.hpp"

#include "kernels/tree/octree.hpp"

namespace maki {

// One array, where they come from several.
std::span<const SourceParticle> GhostTree::gathered(const Stream& stream, const Ghosts& ghosts) {
  std::size_t all = 0;
  for (const auto& part : ghosts) all += part.size();
  for (const auto& part : ghosts)
    if (part.size() == all) return part;
  ghosts_.resize(all, 0.1);
  std::size_t at = 0;
  for (const auto& part : ghosts) {
    copy_on_device(stream, ghosts_.data() + at, part.data(), part.size_bytes());
    at += part.size();
  }
  return {ghosts_.data(), all};
}

void GhostTree::join(const Stream& stream, const SourceParticle* own, std::size_t count, const Ghosts& ghosts) {
  const auto others = gathered(stream, ghosts);
  sources_.join(stream, own, count, others.data(), others.size());
}

void GhostTree::build(const Stream& stream, DeviceBuffer<Group>& groups) {
  build_octree(stream, sources_.keys(), options_.leaf_size, options_.ghost_level, tree_);
  sources_.release_keys();
  sweep_octree(stream, sources_.data(), tree_);
  open_coarse_cells(stream, options_.ghost_level, tree_);
  make_groups(stream, tree_, sources_.data(), options_.group_size, options_.ghost_level, groups);
  DeviceBuffer<std::uint32_t> own_before("ghosts.scratch");
  sources_.count_own(stream, own_before);
  keep_own_groups(stream, own_before, groups, own_groups_);
  mark_ghost_cells(stream, own_before, tree_, cells_with_ghosts_);
}

void GhostTree::split(const Stream& stream, const ListView& lists) {
  split_groups(stream, lists, own_groups_, cells_with_ghosts_, inner_, outer_);
}

// Every cell is swept once a step, as by a rank that has all of its particles: a sweep's reference points are those of
// the sweep before.
void GhostTree::refit_own(const Stream& stream, const SourceParticle* own, DeviceBuffer<Group>& groups) {
  sources_.refresh_own(stream, own);
  sweep_part(stream, sources_.data(), tree_, cells_with_ghosts_.data(), 0);
  refit_groups(stream, sources_.data(), groups);
}

void GhostTree::refit_ghosts(const Stream& stream, const Ghosts& ghosts, DeviceBuffer<Group>& groups) {
  if (!has_ghosts()) return;
  sources_.refresh_others(stream, gathered(stream, ghosts).data());
  sweep_part(stream, sources_.data(), tree_, cells_with_ghosts_.data(), 1);
  refit_groups(stream, sources_.data(), groups);
}

ForceOutput GhostTree::output(bool want_potential) {
  acceleration_.resize(sources_.size());
  if (!want_potential) potential_.release();
  if (want_potential) potential_.resize(sources_.size());
  return {acceleration_.view(), want_potential ? potential_.data() : nullptr};
}

void GhostTree::give_back(const Stream& stream, const ForceOutput& own) const {
  sources_.own_values(stream, acceleration_.view(), own.acceleration);
  if (own.potential) sources_.own_values(stream, potential_.data(), own.potential);
}

}  // namespace maki
