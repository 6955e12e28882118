// Sums over all sites of a run, and the conservation of energy.
#pragma once

#include <cstdint>

#include "host/measure/totals.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// Totals of one site, and their sums over all sites in the order of the ring. collect_totals() receives the totals that
// every site has published under `number`; it waits for them.
struct SiteTotals {
  EnergyTotals energy;
  MomentumTotals momentum;
};
void publish_totals(sites::Sites& sites, std::uint64_t number, const SiteTotals& mine);
SiteTotals collect_totals(sites::Sites& sites, std::uint64_t number);

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
  double bulk = 0;     // kinetic energy of the centre of mass at the first full sample
};

// Kinetic energy P^2 / 2M of an isolated set's centre of mass, and its gain since the start: V times the change of P by
// roundings of momenta and the net force of a tree, in a set that moves with V. That change itself is
// StepMetrics::momentum_drift.
struct BulkEnergy {
  double kinetic = 0, gained = 0;
};

// Isolated: error = (E - E_0 - (B - B_0)) / |E_0 - B_0|, or over |W| where E_0 - B_0 is negligible beside it; B is the
// BulkEnergy.
// Comoving: with H = T + W, dH/dt = -(da/dt)/a (2 T + W) (Layzer 1963, Irvine 1961), so that a (T + W) + int T da is
// constant; error = its change over the largest |a W| so far. A softening that varies with a is not included.
class EnergyTracker {
 public:
  explicit EnergyTracker(bool comoving) : comoving_(comoving) {}

  // Only the kinetic energy, between full samples: refines the integral (trapezoids in a).
  void add_kinetic(double a, double kinetic);
  // Both energies at one synchronised state.
  EnergyReport add(double a, double kinetic, double potential, const BulkEnergy& bulk = {});
  // Subtracts the energy (kinetic, and potential against all others) of escapers.
  void remove(double energy) { s_.removed += energy; }

  const EnergyState& state() const { return s_; }
  void restore(const EnergyState& state) { s_ = state; }

 private:
  bool comoving_;
  EnergyState s_;
};

}  // namespace maki
