// How wrong are kept lists? A sample of the groups is walked twice more: as for new lists, and with a much smaller opening
// angle, which is the reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/force/force.hpp"
#include "kernels/measure/gravity_sums.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"
#include "src/gravity/kept_lists.hpp"

namespace maki {

// Errors of kept and of new lists are those of the same groups at the same time, so that their ratio is not a matter of
// luck. The sample stays the same between two rebuilds.
class ListProbes {
 public:
  // Picks about 0.1 % of the groups, at least 48 (or all), spread over the whole set. `group_size`: the largest number
  // of members of a group.
  void choose(const Stream& stream, const DeviceBuffer<Group>& groups, std::uint32_t group_size);

  // No sample: of groups that are no longer there, or whose lists are not kept.
  void clear() { indices_.resize(0); }

  // Copies the members of the sample at their present positions; later changes of groups and particles do not matter.
  void gather(const Stream& stream, const DeviceBuffer<Group>& groups, const SourceParticle* particles);
  // Queues the sample's forces over one tree, by lists as they would be made now and by strict ones; those of imported
  // trees are added to those before. Valid if finish() returns true after `results` have been fetched.
  struct Walks {
    WalkOptions fresh, strict;
  };
  void evaluate(const Stream& stream, const Sources& sources, const Walks& walks, const ForceLaw& law, bool quadrupoles,
                Results& results);

  // Writes the differences of `acceleration` and of fresh forces from the strict ones to *error (device memory).
  void compare(const Stream& stream, const DeviceBuffer<Group>& groups, ConstVectorView acceleration,
               SampleError* error) const;

  // False: lists had too little room and have been enlarged; everything from gather() on has to be repeated.
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
  // Packed forces on the sample, and the walks for them, one for each tree, whose memory is used again.
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
