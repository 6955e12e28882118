// The random linear density of the universe, mode by mode, and particles displaced from a lattice by
// Lagrangian perturbation theory, of first (Zel'dovich) or second order (2LPT).
#pragma once

#include <array>
#include <complex>
#include <cstdint>

#include "src/cosmology/power.hpp"
#include "src/ic/periodic_grid.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

struct GaussianFieldParameters {
  std::uint64_t seed = 1;
  bool fixed_amplitudes = false;  // |delta_k|^2 = P/V exactly, phases random (Angulo & Pontzen 2016, MNRAS 462, L1)
  bool flip_phases = false;       // delta -> -delta: the partner of a pair
};

// The random factor of the mode (mx, my, mz), mean square 1, with value(-m) = conj(value(m)). It depends only on the
// parameters and the mode, so that the large-scale modes are the same at any resolution.
std::complex<double> random_mode(const GaussianFieldParameters& parameters, int mx, int my, int mz);

// Linear contrast at z = 0 as modes: delta_m = random_mode * sqrt(P(k)/V), on an n^3 grid over a box of side box_size
// (length units). The mean and the modes on the Nyquist planes (any |m| = n/2), whose phase a grid cannot represent,
// are 0. Each rank makes the modes that it holds; working memory beside the grid: at most 8 bytes a mode.
PeriodicGrid make_linear_density(const GaussianFieldParameters& parameters, const PowerSpectrum& power, double box_size,
                                 int n, const Communicator& ranks = Communicator::self(),
                                 std::size_t message_bytes = PeriodicGrid::kMessageBytes);

struct CosmologicalIcParameters {
  std::uint64_t seed = 1;
  int particles_per_side = 64;  // even
  double box_size = 50;         // length units, comoving
  double redshift = 49;
  bool second_order = true;
  bool dealias = true;            // products of 2LPT are formed on a grid of 3/2 the points a side (the "3/2 rule")
  bool fixed_amplitudes = false;  // these two: GaussianFieldParameters
  bool flip_phases = false;
};

// For estimates: bytes a particle of the grids of 2LPT, before particles exist (make_cosmological_ic()).
inline constexpr double kLptBytes = 90;

// Makes random field, displacements and particles. The particle with id i + 1 comes from the lattice site i = (ix n +
// iy) n + iz at (ix, iy, iz) L/n. Positions in [0, L), peculiar velocities a dx/dt, equal masses Omega0 rho_crit
// L^3/n^3. Collective; rank r of P gets the particles of the sites n^3 r/P ... n^3 (r + 1)/P - 1. The whole set has the
// same bits for any number of ranks and threads. Throws Error on parameters out of range.
//
// Working memory of all ranks together: 16 bytes x n^3 beside the snapshot (24 in 2LPT), and in 2LPT before the
// snapshot is made 89 bytes x n^3 (dealiased) or 32. Each of P ranks takes a P-th of that, as evenly as PencilLayout
// cuts the grids, and messages of twice 64 MiB.
Snapshot make_cosmological_ic(const CosmologicalIcParameters& parameters, const Cosmology& cosmology,
                              const PowerSpectrum& power, const Communicator& ranks = Communicator::self());

// As make_cosmological_ic(), but from given modes of the linear contrast at z = 0, over the ranks of `density`;
// `parameters` gives box, redshift and order:
//   x = q + D1 psi1 + D2 psi2,   div psi1 = -delta,   div psi2 = sum_{i<j} phi,ii phi,jj - phi,ij^2,  lap phi = delta,
// psi curl-free (Bouchet et al. 1995, A&A 296, 575; Scoccimarro 1998, MNRAS 299, 1097, appendix D).
Snapshot displace_lattice(const PeriodicGrid& density, const CosmologicalIcParameters& parameters,
                          const Cosmology& cosmology);

// A plane wave that collapses to sheets at one redshift: delta = D1(a)/D1(a_c) cos(k q), k = 2 pi wave/L. First order
// is exact until then (Zel'dovich 1970, A&A 5, 84).
struct PancakeParameters {
  int particles_per_side = 64;
  double box_size = 50;
  double redshift = 49;
  double collapse_redshift = 1;
  std::array<int, 3> wave = {1, 0, 0};  // waves along each side
};
// Collective, with shares as in make_cosmological_ic().
Snapshot make_pancake(const PancakeParameters& parameters, const Cosmology& cosmology,
                      const Communicator& ranks = Communicator::self());

}  // namespace maki
