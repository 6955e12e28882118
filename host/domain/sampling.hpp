// Costs of particles, summed on the device in particle order, and sample particles that represent the cost of the whole
// set, the same on every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/domain/multisection.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/particles/types.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

// Costs of the particles in the last evaluations (device arrays): cost[i] is the cost of group i, for example its
// interactions; groups are consecutive and hold all particles. Without groups, cost[i] is the cost of particle i;
// without costs, all particles cost the same. All ranks give the same kind; ranks without particles may give an empty
// one.
struct Costs {
  const std::uint32_t* cost = nullptr;
  const Group* groups = nullptr;
  std::size_t count = 0;  // of groups, or of particles
  // Cost of work that is equal for all particles (keys, sort, mesh), added for each, in units of `cost`. It also bounds
  // the number of cheap particles on one rank.
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

// Costs of groups from their interaction lists: cost[g] of each group g that `lists` names is its members times (the
// particles of its leaves + `cell_cost` times its cells); with cell_cost = 1, its interactions. `add`: adds to `cost`,
// for lists over another tree. Costs saturate at 2^32 - 1. `cell_count` as in SourceView.
void group_costs(const Stream& stream, const std::uint32_t* cell_count, const ListView& lists, std::uint32_t cell_cost,
                 std::uint32_t* cost, bool add = false);

struct Samples {
  std::vector<SamplePoint> points;  // of all ranks, each of the same cost
  std::uint64_t cost = 0;           // of all particles of all ranks; in nanoseconds where times count
  double imbalance = 1;             // largest over mean of the ranks' present costs or times
};

// The cost of all particles, in the order of ranks and particles, is cut into as many equal strata as there are
// samples. The particle at a random place of each stratum is a sample (Philox4x32 by number of the stratum and `step`).
// So a rank gives samples in proportion to its cost, and all have equal weight. As particles are in Morton order, each
// sample represents a region of space, with far less noise than independent samples. There are fewer samples where the
// total cost is below their number; where the cost is 0, all particles cost the same. Collective: all ranks get the
// same samples in the same order.
//
// `per_rank`: the number of samples for each rank, but at most 2^18 in all, unless a rank would then have fewer than
// 500. Largest over mean cost after five steps, 8 ranks, 200 000 particles in clumps or one Plummer sphere: 1.001 with
// 2000 samples a rank, 1.006 with 500, 1.012 with 100, 1.04 with 30; on 4096 ranks (a model of the cuts alone) 1.06
// with 500 and 1.27 with 64. Cutting 2^18 samples takes about 0.1 s.
Samples gather_samples(const Stream& stream, const Communicator& communicator, const Particles& particles,
                       const Costs& costs, std::uint64_t step, std::uint64_t per_rank = 2000);

// The cumulated cost at which the sample of stratum k lies: one of `count` equal strata of `total` >= count. Increases
// with k.
std::uint64_t sample_cost(std::uint64_t k, std::uint64_t count, std::uint64_t total, std::uint64_t step);

}  // namespace maki
