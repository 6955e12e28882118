// Sums and maxima over all particles of a site: over this rank's particles on its device, then over ranks, rounded once.
// They have the same bits on all ranks and for any number of ranks (host/comm/wide_sums.hpp). Collective.
#pragma once

#include <array>
#include <cstdint>

#include "host/comm/communicator.hpp"
#include "kernels/measure/reductions.hpp"

namespace maki {

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

double over_ranks(const Communicator& ranks, const DoubleDouble& mine);

// Maxima over all ranks. NaN becomes infinity.
StepMaxima largest_of_ranks(const Communicator& ranks, const StepMaxima& mine);
std::int64_t largest_of_ranks(const Communicator& ranks, std::int64_t mine);

// Maxima and sums of squares of all ranks. `total`: the number of particles of all sites. One wait for the device where
// all of these are on this rank, two elsewhere: the sums' unit follows from the maxima.
StepMeasures measures_of_ranks(const Communicator& ranks, const Stream& stream, const Particles& particles,
                               const VectorArray& short_range, const VectorArray* long_range, std::uint64_t total);

}  // namespace maki
