// Sums over all particles of a run: over this rank's particles on its device, then over ranks, rounded once. They have
// the same bits on all ranks and for any number of ranks (exact_sum of host/comm/exact_sum.hpp). Collective.
#pragma once

#include <array>
#include <cstdint>

#include "host/comm/communicator.hpp"
#include "kernels/measure/reductions.hpp"
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

// Maxima over all ranks. NaN becomes infinity.
StepMaxima largest_of_ranks(const Communicator& ranks, const StepMaxima& mine);
std::int64_t largest_of_ranks(const Communicator& ranks, std::int64_t mine);

// Maxima and sums of squares of all ranks. `total`: the number of particles of all sites. One wait for the device where
// all of these are on this rank, two elsewhere: the sums' unit follows from the maxima.
StepMeasures measures_of_ranks(const Communicator& ranks, const Stream& stream, const Particles& particles,
                               const VectorArray& short_range, const VectorArray* long_range, std::uint64_t total);

// Conservation of energy along a run.
struct EnergyReport {
  double kinetic = 0;    // T = sum m p^2 / (2 a^2): of the peculiar velocities, mass velocity^2
  double potential = 0;  // W = sum m phi / (2 a)
  double integral = 0;   // int T da since the start; 0 in isolated runs
  double error = 0;      // see EnergyTracker
};

// State of the EnergyTracker, as restarts keep it.
struct EnergyState {
  bool has_start = false, has_kinetic = false;
  double start = 0;  // a (T + W), or E, at the first full sample
  double integral = 0;
  double last_a = 0, last_kinetic = 0;
  double scale = 0;    // largest |a W|
  double removed = 0;  // energy of particles that were set aside
};

// Isolated: error = (E - E_0) / |E_0|, or over |W| where E_0 is negligible beside it.
// Comoving: with H = T + W, dH/dt = -(da/dt)/a (2 T + W) (Layzer 1963, Irvine 1961), so that a (T + W) + int T da is
// constant; error = its change over the largest |a W| so far. A softening that varies with a is not included.
class EnergyTracker {
 public:
  explicit EnergyTracker(bool comoving) : comoving_(comoving) {}

  // Only the kinetic energy, between full samples: refines the integral (trapezoids in a).
  void add_kinetic(double a, double kinetic);
  // Both energies at one synchronised state.
  EnergyReport add(double a, double kinetic, double potential);
  // Subtracts the energy (kinetic, and potential against all others) of escapers.
  void remove(double energy) { s_.removed += energy; }

  const EnergyState& state() const { return s_; }
  void restore(const EnergyState& state) { s_ = state; }

 private:
  bool comoving_;
  EnergyState s_;
};

}  // namespace maki
