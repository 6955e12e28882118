// Sums and maxima over all particles of a site: over this rank's particles on its device, then over ranks, rounded
// once. They have the same bits on all ranks and for any number of ranks (sum_over_ranks()). Collective.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/measure/double_double.hpp"
#include "kernels/measure/reductions.hpp"

namespace maki {

// The sums over ranks in more digits than a double has, added in the order of ranks: the same bits on every rank. Their
// errors are some 1e-32 of the largest partial sum, and 0 where terms are multiples of a 2^-106th part of that. So
// value() is the exact sum rounded once, for any number of ranks, unless the exact sum is that close to the midpoint of
// two doubles. Collective.
inline void sum_over_ranks(const Communicator& ranks, std::span<DoubleDouble> sums) {
  if (ranks.size() == 1) return;
  std::vector<DoubleDouble> all(static_cast<std::size_t>(ranks.size()) * sums.size());
  ranks.all_gather(sums.data(), all.data(), sums.size_bytes());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = all[i];
    for (std::size_t k = i + sums.size(); k < all.size(); k += sums.size()) sums[i] = sums[i] + all[k];
  }
}

struct EnergyTotals {
  double kinetic = 0;    // 1/2 sum m p^2
  double potential = 0;  // 1/2 sum m phi, mass^2 / side
  double mass = 0;
};
EnergyTotals over_ranks(const Communicator& ranks, const EnergySums& mine);

struct MomentumTotals {
  std::array<double, 3> momentum{};  // sum m p
  double momentum_scale = 0;         // sum m |p|
  std::array<double, 3> force{};     // sum m a
  double force_scale = 0;            // sum m |a|
};
MomentumTotals over_ranks(const Communicator& ranks, const MomentumSums& mine);

// The sum over all ranks, rounded once.
double over_ranks(const Communicator& ranks, const DoubleDouble& mine);

// Maxima over all ranks. NaN becomes infinity.
StepMaxima largest_of_ranks(const Communicator& ranks, const StepMaxima& mine);
std::int64_t largest_of_ranks(const Communicator& ranks, std::int64_t mine);

// Maxima and sums of squares of all ranks. `total`: the number of particles of all sites. Waits for the device once
// where all particles are on this rank, else twice: the sums' units follow from the maxima of all ranks.
StepMeasures measures_of_ranks(const Communicator& ranks, const Stream& stream, const Particles& particles,
                               const VectorArray& short_range, const VectorArray* long_range, std::uint64_t total);

}  // namespace maki
