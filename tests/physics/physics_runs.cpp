#include "tests/physics/physics_runs.hpp"
#include "tests/test_stream.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

namespace maki {

SimulationOptions box_options(const Snapshot& initial, double softening, double end_redshift, int mesh) {
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

SimulationOptions isolated_options(const Snapshot& initial, double softening, double end) {
  double reach = 0;
  for (const auto& position : initial.positions)
    for (const double component : position) reach = std::max(reach, std::fabs(component));
  const double side = 5 * reach;  // the middle half reaches to a quarter of it
  SimulationOptions options;
  options.side = side;
  options.end = end;
  options.step_options.softening = softening;
  options.gravity.periodic = false;
  options.gravity.law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, softening / side);
  return options;
}

RunRecord run(const Snapshot& initial, const SimulationOptions& options, const Timeline& timeline) {
  const Stream& stream = test::test_stream();
  RunRecord record;
  Simulation simulation(stream, initial, options, timeline, record);
  record.result = simulation.run();
  return record;
}

std::map<std::uint64_t, std::size_t> index_by_id(const Snapshot& snapshot) {
  std::map<std::uint64_t, std::size_t> index;
  for (std::size_t i = 0; i < snapshot.size(); ++i) index[snapshot.ids[i]] = i;
  return index;
}

namespace {

// sum_p m_p exp(-i k x_p) for all modes 0..bins in z and -bins..bins in x and y, from powers of the three phases.
using Mode = std::complex<double>;

struct ModeSums {
  int bins;
  std::vector<Mode> values;
  explicit ModeSums(int b) : bins(b), values(static_cast<std::size_t>((2 * b + 1) * (2 * b + 1) * (b + 1))) {}
  Mode& at(int mx, int my, int mz) {
    return values[static_cast<std::size_t>(((mx + bins) * (2 * bins + 1) + my + bins) * (bins + 1) + mz)];
  }
};

std::vector<Mode> powers(double fraction, int bins) {
  std::vector<Mode> row(static_cast<std::size_t>(2 * bins + 1));
  for (int m = -bins; m <= bins; ++m)
    row[static_cast<std::size_t>(m + bins)] = std::polar(1.0, -2 * std::numbers::pi * m * fraction);
  return row;
}

ModeSums sum_modes(const Snapshot& snapshot, int bins) {
  ModeSums sums(bins);
  const double side = snapshot.header.box_size;
  for (std::size_t i = 0; i < snapshot.size(); ++i) {
    const auto& position = snapshot.positions[i];
    const auto x = powers(position[0] / side, bins), y = powers(position[1] / side, bins),
               z = powers(position[2] / side, bins);
    Mode* out = sums.values.data();
    for (const Mode& fx : x) {
      for (const Mode& fy : y) {
        const Mode xy = fx * fy * static_cast<double>(snapshot.masses[i]);
        for (int mz = 0; mz <= bins; ++mz) *out++ += xy * z[static_cast<std::size_t>(mz + bins)];
      }
    }
  }
  return sums;
}

}  // namespace

std::vector<double> mode_power(const Snapshot& snapshot, int bins) {
  ModeSums sums = sum_modes(snapshot, bins);
  double mass = 0;
  for (const float m : snapshot.masses) mass += m;
  std::vector<double> power(static_cast<std::size_t>(bins), 0.0), modes(static_cast<std::size_t>(bins), 0.0);
  for (int mx = -bins; mx <= bins; ++mx) {
    for (int my = -bins; my <= bins; ++my) {
      for (int mz = 0; mz <= bins; ++mz) {
        const auto bin = std::lround(std::sqrt(mx * mx + my * my + mz * mz));
        if (bin < 1 || bin > bins) continue;
        const double weight = mz == 0 ? 1 : 2;
        power[static_cast<std::size_t>(bin - 1)] += weight * std::norm(sums.at(mx, my, mz) / mass);
        modes[static_cast<std::size_t>(bin - 1)] += weight;
      }
    }
  }
  for (std::size_t bin = 0; bin < power.size(); ++bin) power[bin] /= modes[bin];
  return power;
}

double lagrangian_radius(const Snapshot& snapshot, double fraction) {
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
