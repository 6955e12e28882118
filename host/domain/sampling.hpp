// Sample particles that stand for the cost of the whole set, the same on every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/domain/cost_sums.hpp"
#include "kernels/particles/particles.hpp"

namespace maki {

// Largest over mean cost after five steps, 8 ranks, 200 000 particles in clumps or one Plummer sphere: 1.001 with 2000
// samples a rank, 1.006 with 500, 1.012 with 100, 1.04 with 30. Cutting 2^18 samples takes about 0.1 s.
struct SamplingRate {
  std::uint64_t per_rank = 2000;    // samples over ranks
  std::uint64_t most = 1ull << 18;  // samples in all
};

struct Samples {
  std::vector<SamplePoint> points;  // all ranks', each of the same cost
  std::uint64_t cost = 0;           // of all particles of all ranks; in nanoseconds where times count
  double imbalance = 1;             // largest over mean of the ranks' present costs or times
};

// The cost of all particles, rank after rank and in their order, is cut into as many equal strata as there are samples;
// the particle that stands at a random place of each is a sample (Philox4x32 by number of the stratum and `step`). So a
// rank gives samples in proportion to its cost, all have one weight, and as particles are in Morton order each stands
// for a piece of space, which leaves far less noise than samples drawn freely. There are fewer samples where the total
// cost is below their number; where the cost is 0, all particles cost the same. Collective: all ranks get the same
// samples in the same order.
Samples gather_samples(const Stream& stream, const Communicator& communicator, const Particles& particles,
                       const Costs& costs, std::uint64_t step, const SamplingRate& rate = {});

// The cost at which a stratum's sample stands: stratum k of `count` over `total` >= count. Rises with k.
std::uint64_t sample_cost(std::uint64_t k, std::uint64_t count, std::uint64_t total, std::uint64_t step);

}  // namespace maki
