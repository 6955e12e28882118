// Sums over all particles of a run: over this rank's particles on its device, then over ranks, rounded once. The same
// bits on all ranks and for any number of ranks (exact_sum of host/comm/exact_sum.hpp). Collective.
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

// Totals of one site, and their sums over all sites in the order of the ring. collect_totals() receives the totals that
// every site has published under `number`; it waits for them.
struct SiteTotals {
  EnergyTotals energy;
  MomentumTotals momentum;
};
void publish_totals(sites::Sites& sites, std::uint64_t number, const SiteTotals& mine);
SiteTotals collect_totals(sites::Sites& sites, std::uint64_t number);

double over_ranks(const Communicator& ranks, const DoubleDouble& mine);
std::uint64_t over_ranks(const Communicator& ranks, std::uint64_t mine);

// Maxima over all ranks. NaN becomes infinity.
StepMaxima largest_of_ranks(const Communicator& ranks, const StepMaxima& mine);
std::int64_t largest_of_ranks(const Communicator& ranks, std::int64_t mine);

}  // namespace maki
