#include "src/ic/gaussian_field.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "src/ic/random.hpp"

namespace maki {

std::complex<double> random_mode(const GaussianFieldParameters& parameters, int mx, int my, int mz) {
  // Of m and -m, the mode whose last non-zero number is positive is drawn; the other is its conjugate.
  const bool conjugate = mz != 0 ? mz < 0 : my != 0 ? my < 0 : mx < 0;
  if (conjugate) return std::conj(random_mode(parameters, -mx, -my, -mz));
  const CounterRandom random(parameters.seed, RandomStream::kModes);
  const auto [u, v] =
      random.uniform(static_cast<std::uint32_t>(mx), static_cast<std::uint32_t>(my), static_cast<std::uint32_t>(mz));
  const double amplitude = parameters.fixed_amplitudes ? 1 : std::sqrt(-std::log(u));
  const std::complex<double> value = std::polar(amplitude, 2 * std::numbers::pi * v);
  return parameters.flip_phases ? -value : value;
}

namespace {

// sqrt(P/V) by m^2, from a table where it has fewer values than there are modes.
class Amplitudes {
 public:
  Amplitudes(const PowerSpectrum& power, double box_size, int half, std::size_t modes)
      : power_(power), k1_(2 * std::numbers::pi / box_size), volume_(box_size * box_size * box_size) {
    const std::size_t largest = 3 * static_cast<std::size_t>(half) * static_cast<std::size_t>(half);
    if (largest >= modes) return;
    table_.resize(largest + 1);
#pragma omp parallel for schedule(static)
    for (std::size_t m2 = 1; m2 < table_.size(); ++m2) table_[m2] = compute(m2);
  }
  double operator()(std::size_t m2) const { return table_.empty() ? compute(m2) : table_[m2]; }

 private:
  double compute(std::size_t m2) const { return std::sqrt(power_(k1_ * std::sqrt(static_cast<double>(m2))) / volume_); }
  const PowerSpectrum& power_;
  double k1_, volume_;
  std::vector<double> table_;
};

}  // namespace

PeriodicGrid make_linear_density(const GaussianFieldParameters& parameters, const PowerSpectrum& power, double box_size,
                                 int n, const Communicator& ranks, PeriodicGrid::Messages messages) {
  PeriodicGrid grid(n, ranks, messages);
  const int half = grid.half();
  const PencilBox held = grid.modes();
  const PencilRange y = held.along[1], z = held.along[2];
  const Amplitudes amplitude(power, box_size, half, held.cells());
#pragma omp parallel for collapse(2) schedule(static)
  for (int iy = y.first; iy < y.end; ++iy) {
    for (int ix = 0; ix < n; ++ix) {
      const int mx = grid.wave_number(ix), my = grid.wave_number(iy);
      if (mx == half || my == half) continue;
      PeriodicGrid::Complex* modes = grid.mode_row(ix, iy);
      for (int mz = z.first; mz < std::min(z.end, half); ++mz) {
        const int m2 = mx * mx + my * my + mz * mz;
        if (m2 == 0) continue;
        modes[mz - z.first] = random_mode(parameters, mx, my, mz) * amplitude(static_cast<std::size_t>(m2));
      }
    }
  }
  return grid;
}

}  // namespace maki
