// Sums over all particles of a run: over this rank's on its device, then over ranks, rounded once. The same bits on all
// ranks and for any number of them (exact_sum of host/comm/exact_sum.hpp). Collective.
#pragma once

#include <array>
#include <cstdint>

#include "host/comm/communicator.hpp"
#include "kernels/measure/step_reductions.hpp"
#include "wan/sites/sites.hpp"

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

// Of all sites of a run, from each one's totals over its ranks: added in the order of the ring. collect() takes what
// every site has published under `number`.
struct SiteTotals {
  EnergyTotals energy;
  MomentumTotals momentum;
};
void publish_totals(sites::Sites& sites, std::uint64_t number, const SiteTotals& mine);
SiteTotals collect_totals(sites::Sites& sites, std::uint64_t number);

double over_ranks(const Communicator& ranks, const DoubleDouble& mine);
std::uint64_t over_ranks(const Communicator& ranks, std::uint64_t mine);

// The largest of all ranks. What is not a number comes out as infinity.
StepMaxima largest_of_ranks(const Communicator& ranks, const StepMaxima& mine);
std::int64_t largest_of_ranks(const Communicator& ranks, std::int64_t mine);

}  // namespace maki
