// The random linear density of the universe, mode by mode.
#pragma once

#include <complex>
#include <cstdint>

#include "src/cosmology/power.hpp"
#include "src/ic/periodic_grid.hpp"

namespace maki {

struct GaussianFieldParameters {
  std::uint64_t seed = 1;
  bool fixed_amplitudes = false;  // |delta_k|^2 = P/V exactly, phases random (Angulo & Pontzen 2016, MNRAS 462, L1)
  bool flip_phases = false;       // delta -> -delta: the partner of a pair
};

// The random factor of the mode (mx, my, mz), mean square 1; it obeys value(-m) = conj(value(m)). It depends only on
// the seed and the mode: the universe is the same at any resolution.
std::complex<double> random_mode(const GaussianFieldParameters& parameters, int mx, int my, int mz);

// Linear contrast at z = 0 as modes: delta_m = random_mode * sqrt(P(k)/V), on an n^3 grid over a box of side box_size
// (length units). The mean and the modes on the Nyquist planes (any |m| = n/2), whose phase a grid cannot represent,
// are 0. Each rank makes the modes that it holds; working memory beside the grid: at most 8 bytes a mode.
PeriodicGrid make_linear_density(const GaussianFieldParameters& parameters, const PowerSpectrum& power, double box_size,
                                 int n, const Communicator& ranks = Communicator::self(),
                                 PeriodicGrid::Messages messages = {});

}  // namespace maki
