// Runs of isolated systems; each returns how far it strayed from the known solution.
#pragma once

#include <cstdint>

namespace maki {

struct OrbitErrors {
  double energy = 0;  // largest |dE/E|
  double phase = 0;   // at the end, radian
  double steps = 0;   // an orbit, mean
};
// Two equal bodies, e = 0.5, from apocentre, with the tree and adaptive steps.
OrbitErrors kepler_orbit(int periods, int steps_a_period);

struct EquilibriumErrors {
  double energy = 0;            // largest |dE/E|
  double half_mass_radius = 0;  // relative change at the end
  double inner_radius = 0;      // the same for 10 % of the mass
  double momentum = 0;          // largest |sum m a| / sum m |a|
};
// Henon units: a crossing time is 2 sqrt(2).
EquilibriumErrors plummer_sphere(std::uint64_t particles, double crossing_times);

// Cold uniform sphere through its collapse at t = 5.8 to t = 7: largest |dE/E|.
double cold_collapse(std::uint64_t particles);

}  // namespace maki
