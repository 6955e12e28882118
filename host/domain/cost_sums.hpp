// Costs of particles, summed up on the device in their order.
#pragma once

#include <cstdint>
#include <vector>

#include "host/domain/multisection.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/particles/types.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

// What the particles cost in the last evaluations (device arrays): cost[i] is that of group i, its interactions say;
// groups follow one another and hold all particles. Without groups, cost[i] is particle i's; without cost, all
// particles cost the same. Everyone gives the same kind; ranks without particles may give an empty one.
struct Costs {
  const std::uint32_t* cost = nullptr;
  const Group* groups = nullptr;
  std::size_t count = 0;  // of groups, or of particles
  // Added for each particle, in units of `cost`: work that is alike for all (keys, sort, mesh), and a bound on how many
  // cheap particles one rank may get.
  std::uint32_t each = 0;
  // What this rank took for all of it, 0 where that is not to count. Where all ranks that have cost give their time, a
  // rank's cost weighs as much as the time that it took, and a slower machine gets less. Times differ from run to run.
  double seconds = 0;
};

// Costs summed from the first group on, on the device, and the particles found at given sums.
class CostSums {
 public:
  CostSums(const Stream& stream, const Costs& costs, std::size_t particles);
  std::uint64_t total() const { return total_; }
  // Positions of the particles at which the cumulated cost exceeds each of `at` (ascending, below total()).
  std::vector<SamplePoint> particles_at(const Stream& stream, const SourceParticle* source,
                                        const std::vector<std::uint64_t>& at) const;

 private:
  Costs costs_;
  DeviceBuffer<std::uint64_t> below_{"samples.cost"};  // of all groups before
  std::uint64_t total_ = 0;
};

}  // namespace maki
