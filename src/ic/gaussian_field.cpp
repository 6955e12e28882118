#include "src/ic/gaussian_field.hpp"

#include <cmath>
#include <numbers>
#include <vector>

#include "src/ic/random.hpp"

namespace maki {

std::complex<double> random_mode(const GaussianFieldParameters& parameters, int mx, int my, int mz) {
  // Of m and -m the one whose last non-zero number is positive is drawn, the other is its conjugate.
  const bool conjugate = mz != 0 ? mz < 0 : my != 0 ? my < 0 : mx < 0;
  if (conjugate) return std::conj(random_mode(parameters, -mx, -my, -mz));
  const CounterRandom random(parameters.seed, RandomStream::kModes);
  const auto [u, v] = random.uniform(static_cast<std::uint32_t>(mx), static_cast<std::uint32_t>(my),
                                     static_cast<std::uint32_t>(mz));
  const double amplitude = parameters.fixed_amplitudes ? 1 : std::sqrt(-std::log(u));
  const std::complex<double> value = std::polar(amplitude, 2 * std::numbers::pi * v);
  return parameters.flip_phases ? -value : value;
}

PeriodicGrid make_linear_density(const GaussianFieldParameters& parameters, const PowerSpectrum& power, double box_size,
                                 int n) {
  PeriodicGrid grid(n);
  const int half = grid.half();
  // sqrt(P/V) by m^2, which takes far fewer values than there are modes.
  std::vector<double> amplitude(static_cast<std::size_t>(3 * half * half) + 1, 0.0);
  const double volume = box_size * box_size * box_size;
#pragma omp parallel for schedule(static)
  for (std::size_t m2 = 1; m2 < amplitude.size(); ++m2) {
    const double k = 2 * std::numbers::pi / box_size * std::sqrt(static_cast<double>(m2));
    amplitude[m2] = std::sqrt(power(k) / volume);
  }
#pragma omp parallel for collapse(2) schedule(static)
  for (int ix = 0; ix < n; ++ix) {
    for (int iy = 0; iy < n; ++iy) {
      const int mx = grid.wave_number(ix), my = grid.wave_number(iy);
      if (mx == half || my == half) continue;
      PeriodicGrid::Complex* modes = grid.mode_row(ix, iy);
      for (int mz = 0; mz < half; ++mz) {
        const int m2 = mx * mx + my * my + mz * mz;
        if (m2 > 0) modes[mz] = random_mode(parameters, mx, my, mz) * amplitude[static_cast<std::size_t>(m2)];
      }
    }
  }
  return grid;
}

}  // namespace maki
