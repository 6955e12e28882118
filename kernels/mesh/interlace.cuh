// Interlacing: two meshes, the second with all particles half a cell further, become one spectrum in which images with
// odd n_x + n_y + n_z cancel (Hockney & Eastwood 1988, section 7-7; Sefusatti et al. 2016).
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/mesh/modes.cuh"

namespace maki {

// exp(+i pi n / m) by n = 0 ... m - 1 (n above m/2 means n - m): the phase that undoes a shift by half a cell along one
// axis. Zero at m/2, where k and -k are one mode and the shift has no meaning.
inline std::vector<Complex> half_cell_phases(int m) {
  std::vector<Complex> phases(static_cast<std::size_t>(m), Complex{0, 0});
  for (int n = 0; n < m; ++n) {
    if (n == m / 2) continue;
    const double angle = std::numbers::pi * (n < m / 2 ? n : n - m) / m;
    phases[static_cast<std::size_t>(n)] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
  }
  return phases;
}

MAKI_HD Complex product(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

// mesh = (mesh + phase shifted) / 2. Modes on a Nyquist plane keep what the first mesh has.
struct CombineMeshes {
  Complex* mesh;
  const Complex* shifted;
  const Complex* phases;
  int m;

  struct Row {
    Complex phase;
    bool nyquist;
  };
  MAKI_HD Row begin(int x, int y) const { return {product(phases[x], phases[y]), 2 * x == m || 2 * y == m}; }
  MAKI_HD void at(const Row& row, int z, std::size_t i) const {
    if (row.nyquist || 2 * z == m) return;
    const Complex moved = product(product(row.phase, phases[z]), shifted[i]);
    mesh[i] = {0.5f * (mesh[i].re + moved.re), 0.5f * (mesh[i].im + moved.im)};
  }
};

}  // namespace maki
