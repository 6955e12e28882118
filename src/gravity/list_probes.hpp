// How wrong are kept lists? A sample of the groups is also walked with a much smaller opening angle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/force/force.hpp"
#include "kernels/measure/gravity_sums.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"
#include "src/gravity/sources.hpp"

namespace maki {

// The sample stays the same between two rebuilds, so that the ratio of two errors is not a matter of luck.
class ListProbes {
 public:
  // Picks about 0.1 % of the groups, at least 48 (or all), spread over the whole set. `group_size`: the largest number
  // of members of a group.
  void choose(const Stream& stream, const DeviceBuffer<Group>& groups, std::uint32_t group_size);

  // Copies the members of the sample at their present positions; later changes of groups and particles do not matter.
  void gather(const Stream& stream, const DeviceBuffer<Group>& groups, const SourceParticle* particles);
  // Queues the sample's forces by lists of opening angle `strict.theta` over one tree; those of imported trees
  // are added to those before. Valid if finish() returns true after `results` have been fetched.
  void evaluate_strict(const Stream& stream, const Sources& sources, const WalkOptions& strict, const ForceLaw& law,
                       bool quadrupoles, Results& results);

  // Writes the difference between `acceleration` and the strict forces to *error (device memory).
  void compare(const Stream& stream, const DeviceBuffer<Group>& groups, ConstVectorView acceleration,
               SampleError* error) const;

  // False: lists had too little room and have been enlarged; everything from gather() on has to be repeated.
  bool finish(const Stream& stream, const WalkOptions& strict, Results& results);

  bool empty() const { return indices_.empty(); }

 private:
  DeviceBuffer<std::uint32_t> indices_{"probes.groups"};
  DeviceBuffer<std::uint32_t> offsets_{"probes.groups"};  // of each probe's particles in the arrays below
  DeviceBuffer<Group> groups_{"probes.groups"};           // the sample, as ranges of particles_
  DeviceBuffer<SourceParticle> particles_{"probes.particles"};
  VectorArray strict_{"probes.strict"};
  struct StrictWalk {
    Octree* tree = nullptr;
    InteractionLists lists;
    QueuedWalk queued;
  };
  std::vector<StrictWalk> walks_;  // one for each tree; their memory is used again
  std::size_t queued_ = 0;         // walks queued since gather() and not finished
};

}  // namespace maki
