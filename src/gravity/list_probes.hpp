// How wrong are kept lists? A sample of the groups is also walked with a much smaller opening angle.
#pragma once

#include <cstdint>

#include "kernels/force/force.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"

namespace maki {

// The sample stays the same between two rebuilds, so that the ratio of two errors is not a matter of luck.
class ListProbes {
 public:
  // Picks about 0.1 % of the groups, at least 48 (or all), spread over the whole set. None has more than `group_size`
  // members.
  void choose(const Stream& stream, const DeviceBuffer<Group>& groups, std::uint32_t group_size);

  // Evaluates the sample with lists of opening angle `strict.theta`; overwrites these particles' entries of `out`
  // and keeps a copy of the acceleration. Call before the evaluation that is to be judged.
  void evaluate_strict(const Stream& stream, Octree& tree, const DeviceBuffer<Group>& groups, const WalkOptions& strict,
                       const ForceLaw& law, bool quadrupoles, const SourceView& sources, const ForceOutput& out);

  // rms of the difference between `acceleration` and the strict one, over the rms of the strict one.
  double error(const Stream& stream, const DeviceBuffer<Group>& groups, ConstVectorView acceleration) const;

  bool empty() const { return indices_.empty(); }

 private:
  DeviceBuffer<std::uint32_t> indices_{"probes.groups"};
  DeviceBuffer<std::uint32_t> offsets_{"probes.groups"};  // of each probe's particles in strict_
  VectorArray strict_{"probes.strict"};
  InteractionLists lists_;
};

}  // namespace maki
