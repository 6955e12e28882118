// The integrator's view of time. Cosmological runs step in t = ln a, isolated runs in t = time; the same
// kick-drift-kick works on both because all it asks for are the exact factors of the two halves.
#pragma once

#include <optional>

#include "src/cosmology/cosmology.hpp"

namespace maki {

class Timeline {
 public:
  // t = ln a. With canonical momenta p = a^2 dx/dt: dp/dt = -grad(phi)/a, dx/dt = p/a^2 (comoving x, phi).
  static Timeline comoving(const CosmologyParameters& parameters, const UnitSystem& units);
  // t = time in length/velocity units, a = 1 for ever.
  static Timeline newtonian();

  bool is_comoving() const { return cosmology_.has_value(); }

  double scale_factor(double t) const;              // exp(t), or 1
  double kick_factor(double t0, double t1) const;   // int dt/a, or t1 - t0
  double drift_factor(double t0, double t1) const;  // int dt/a^2, or t1 - t0
  // The same of what is known at time `at` and grows as in linear theory (Cosmology::growing_kick_factor); or t1 - t0.
  double growing_kick_factor(double t0, double t1, double at) const;
  double growing_drift_factor(double t0, double t1, double at) const;
  double physical_time(double t0, double t1) const;  // int dt, or t1 - t0; length/velocity units
  double hubble(double t) const;                     // (da/dt)/a in velocity/length, or 0
  double time_of_redshift(double z) const;           // -ln(1 + z); throws std::logic_error in a newtonian run

  // The cosmology behind a comoving timeline; throws std::logic_error in a newtonian run.
  const Cosmology& cosmology() const;

 private:
  Timeline() = default;
  std::optional<Cosmology> cosmology_;
};

}  // namespace maki
