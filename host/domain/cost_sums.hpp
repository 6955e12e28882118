// Costs of particles, summed up on the device in their order.
#pragma once

#include <cstdint>
#include <vector>

#include "host/domain/multisection.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/particles/types.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

// Costs of the particles in the last evaluations (device arrays): cost[i] is the cost of group i, for example its
// interactions; groups follow one another and hold all particles. Without groups, cost[i] is the cost of particle i;
// without costs, all particles cost the same. All ranks give the same kind; ranks without particles may give an empty
// one.
struct Costs {
  const std::uint32_t* cost = nullptr;
  const Group* groups = nullptr;
  std::size_t count = 0;  // of groups, or of particles
  // Added for each particle, in units of `cost`: work that is alike for all (keys, sort, mesh), and a bound on how many
  // cheap particles one rank may get.
  std::uint32_t each = 0;
  // Seconds that this rank took for these costs; 0: time does not count. Where all ranks with costs give a time, costs
  // are scaled to their rank's time, and a slower machine gets fewer particles. Times differ from run to run.
  double seconds = 0;
};

// Prefix sums of the costs on the device, and the particles at given sums.
class CostSums {
 public:
  CostSums(const Stream& stream, const Costs& costs, std::size_t particles);
  std::uint64_t total() const { return total_; }
  // Positions of the particles at which the cumulated cost exceeds each of `at` (ascending, below total()).
  std::vector<SamplePoint> particles_at(const Stream& stream, const SourceParticle* source,
                                        const std::vector<std::uint64_t>& at) const;

 private:
  Costs costs_;
  DeviceBuffer<std::uint64_t> below_{"samples.cost"};  // by group: sum over those before it
  std::uint64_t total_ = 0;
};

// What groups cost, by their interaction lists: cost[g] of each group g that `lists` names is its members times (the
// particles of its leaves + `cell_cost` times its cells); with cell_cost = 1 its interactions. `add`: adds to what `cost` holds, for lists over another tree. Costs
// saturate at 2^32 - 1. `cell_count` as in SourceView.
void group_costs(const Stream& stream, const std::uint32_t* cell_count, const ListView& lists, std::uint32_t cell_cost,
                 std::uint32_t* cost, bool add = false);

}  // namespace maki
