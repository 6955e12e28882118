// Runs of periodic boxes; each returns how far it strayed from the known solution.
#pragma once

#include <vector>

#include "tests/physics/physics_runs.hpp"

namespace maki {

struct PancakeErrors {
  double position = 0;    // rms along the wave, over the rms displacement from the lattice
  double velocity = 0;    // rms along the wave, over the rms velocity
  double transverse = 0;  // largest displacement across the wave, in particle spacings
};
// A plane wave that collapses at z = 1, from z = 49 to `end_redshift`, against Zel'dovich's exact solution.
PancakeErrors pancake(int particles_per_side, double end_redshift);

struct GrowthErrors {
  // Ratios minus one, by |m| = 1, 2, ... of k = 2 pi m / L.
  std::vector<double> linear;  // power at z = 9 over that at z = 49 times the squared growth factor
  std::vector<double> lpt;     // power at z = 9 over that of 2LPT of the same seed at z = 9
};
// 50 Mpc/h from z = 49 to z = 9, twice, the second time with all phases turned by pi. A lattice of particles grows
// slower than a fluid, by about k^2 (0.2 % at 1/16 of the Nyquist wave number), so only the largest modes can be
// compared.
GrowthErrors linear_growth(int particles_per_side, double sigma8, double theta);

// Initial conditions of `particles_per_side`^3 in 50 Mpc/h at z = 49, sigma8 = 0.829.
Snapshot standard_universe(int particles_per_side);
Timeline standard_timeline();

}  // namespace maki
