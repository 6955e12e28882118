// Conservation of energy along a run.
#pragma once

namespace maki {

struct EnergyReport {
  double kinetic = 0;    // T = sum m p^2 / (2 a^2): of the peculiar velocities, mass velocity^2
  double potential = 0;  // W = sum m phi / (2 a)
  double integral = 0;   // int T da since the start; 0 in isolated runs
  double error = 0;      // see EnergyTracker
};

// Isolated: error = (E - E_0) / |E_0|, or over |W| where E_0 is nothing beside it.
// Comoving: with H = T + W, dH/dt = -(da/dt)/a (2 T + W) (Layzer 1963, Irvine 1961), so that a (T + W) + int T da
// stays what it was; error = its change over the largest |a W| so far. A softening that varies with a is not part of
// this.
class EnergyTracker {
 public:
  explicit EnergyTracker(bool comoving) : comoving_(comoving) {}

  // Kinetic energy alone, between full samples: sharpens the integral (trapezoids in a).
  void add_kinetic(double a, double kinetic);
  // Both energies at one synchronised state.
  EnergyReport add(double a, double kinetic, double potential);
  // Energy (kinetic and potential against all others) that leaves with particles that are set aside.
  void remove(double energy) { removed_ += energy; }

 private:
  bool comoving_;
  bool has_start_ = false, has_kinetic_ = false;
  double start_ = 0;     // a (T + W), or E, at the first full sample
  double integral_ = 0;
  double last_a_ = 0, last_kinetic_ = 0;
  double scale_ = 0;     // largest |a W|
  double removed_ = 0;
};

}  // namespace maki
