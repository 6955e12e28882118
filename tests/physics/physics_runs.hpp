// Whole runs for comparison with known solutions.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <numbers>
#include <numeric>
#include <vector>

#include "src/cosmology/power.hpp"
#include "src/simulation/simulation.hpp"
#include "tests/src/simulation/recorded_runs.hpp"

namespace maki {

// The `standard` preset in a periodic box: polynomial split n = 5, r_cut = 4.5 cells, interlaced PCS.
// softening in length units; one mesh cell for each particle where mesh is 0.
inline SimulationOptions box_options(const Snapshot& initial, double softening, double end_redshift, int mesh = 0) {
  const double side = initial.header.box_size;
  if (mesh == 0) mesh = static_cast<int>(std::lround(std::cbrt(static_cast<double>(initial.size()))));
  SimulationOptions options;
  options.side = side;
  options.centre.fill(side / 2);
  options.end = 1 / (1 + end_redshift);
  options.step_options.softening = softening;
  options.step_options.eta = 0.2;
  options.step_options.r_cut = 4.5 / mesh * side;
  options.gravity.periodic = true;
  options.theta_early = 0.4;  // as the presets do it: forces nearly cancel early on
  options.gravity.mesh.cells = mesh;
  options.gravity.law = make_force_law(Split::kPolynomial, 5, 4.5 / mesh, Softening::kPlummer, softening / side);
  return options;
}

// Tree without a mesh, in a box about the origin.
inline SimulationOptions isolated_options(const Snapshot& initial, double softening, double end) {
  double reach = 0;
  for (const auto& position : initial.positions)
    for (const double component : position) reach = std::max(reach, std::fabs(component));
  return testing::isolated_options(5 * reach, softening, end);  // the middle half reaches to a quarter of the side
}

// Particle index by id.
inline std::map<std::uint64_t, std::size_t> index_by_id(const Snapshot& snapshot) {
  std::map<std::uint64_t, std::size_t> index;
  for (std::size_t i = 0; i < snapshot.size(); ++i) index[snapshot.ids[i]] = i;
  return index;
}

// |delta_k|^2 of all modes with |m| rounding to 1, 2, ..., bins, k = 2 pi m / L: mean over the modes of a bin, from
// plain sums over particles in double.
inline std::vector<double> mode_power(const Snapshot& snapshot, int bins) {
  const double mass = std::accumulate(snapshot.masses.begin(), snapshot.masses.end(), 0.0);
  std::vector<double> power(static_cast<std::size_t>(bins)), modes(static_cast<std::size_t>(bins));
  for (int mx = -bins; mx <= bins; ++mx)
    for (int my = -bins; my <= bins; ++my)
      for (int mz = 0; mz <= bins; ++mz) {
        const auto bin = std::lround(std::sqrt(mx * mx + my * my + mz * mz));
        if (bin < 1 || bin > bins) continue;
        std::complex<double> sum = 0;
        for (std::size_t i = 0; i < snapshot.size(); ++i) {
          const auto& x = snapshot.positions[i];
          const double turns = (mx * x[0] + my * x[1] + mz * x[2]) / snapshot.header.box_size;
          sum += std::polar(snapshot.masses[i] / mass, -2 * std::numbers::pi * turns);
        }
        const double weight = mz == 0 ? 1 : 2;
        power[static_cast<std::size_t>(bin - 1)] += weight * std::norm(sum);
        modes[static_cast<std::size_t>(bin - 1)] += weight;
      }
  for (std::size_t bin = 0; bin < power.size(); ++bin) power[bin] /= modes[bin];
  return power;
}

// Distance from the median position within which `fraction` of the particles lie. (Far particles move the centre of
// mass.)
inline double lagrangian_radius(const Snapshot& snapshot, double fraction) {
  std::array<double, 3> centre;
  const std::size_t n = snapshot.size();
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::vector<double> values;
    for (const auto& position : snapshot.positions) values.push_back(position[axis]);
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n / 2), values.end());
    centre[axis] = values[n / 2];
  }
  std::vector<double> radii;
  for (const auto& position : snapshot.positions)
    radii.push_back(std::hypot(position[0] - centre[0], position[1] - centre[1], position[2] - centre[2]));
  std::sort(radii.begin(), radii.end());
  return radii[static_cast<std::size_t>(fraction * static_cast<double>(n - 1))];
}

}  // namespace maki
