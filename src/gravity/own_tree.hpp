// The tree of a rank's own particles: the sort, the build, and new sweeps while the tree is kept.
#pragma once

#include "kernels/device/stream.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/octree.hpp"
#include "src/gravity/gravity.hpp"
#include "src/gravity/kept_lists.hpp"

namespace maki {

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

}  // namespace maki
