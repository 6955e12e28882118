#include "src/gravity/own_tree.hpp"

namespace maki {

void OwnTree::sort(const Stream& stream, Particles& particles, VectorArray* carried) {
  const PhaseTimers::Scope scope(timers_, "sort", stream);
  sorter_.sort(stream, particles, carried);
}

void OwnTree::build(const Stream& stream, const Particles& particles) {
  if (particles.size() == 0) {
    tree_.cells = 0;
    return sorter_.release_keys();
  }
  {
    const PhaseTimers::Scope scope(timers_, "build", stream);
    build_octree(stream, sorter_.keys(), options_.leaf_size, min_level(), tree_);
    sorter_.release_keys();
  }
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  sweep_octree(stream, particles.source.data(), tree_);
}

void OwnTree::make_groups_of(const Stream& stream, const Particles& particles, DeviceBuffer<Group>& groups) {
  if (particles.size() == 0) return groups.resize(0);
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  make_groups(stream, tree_, particles.source.data(), options_.group_size, min_level(), groups);
}

void OwnTree::refit(const Stream& stream, const Particles& particles, DeviceBuffer<Group>& groups) {
  if (groups.empty()) return;
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  sweep_octree(stream, particles.source.data(), tree_);
  refit_groups(stream, particles.source.data(), groups);
}

}  // namespace maki
