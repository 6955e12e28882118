#include "src/ic/lagrangian.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "kernels/error.hpp"
#include "src/ic/random.hpp"

namespace maki {
namespace {

using Complex = PeriodicGrid::Complex;

void check(int per_side, double box_size, double redshift) {
  const auto refuse = [](const std::string& reason, const std::string& advice) {
    throw Error("Cannot make these initial conditions", reason, advice);
  };
  if (per_side < 2 || per_side % 2 != 0 || per_side > 16384) {
    refuse(std::to_string(per_side) + " particles a side", "give an even number from 2 to 16384");
  }
  if (!(box_size > 0) || !std::isfinite(box_size)) {
    refuse("the box is " + std::to_string(box_size) + " long", "give a positive length");
  }
  if (!(redshift > -1) || !(redshift < 1e5)) {
    refuse("the redshift is " + std::to_string(redshift), "give one above -1 and below 100000");
  }
}

// target <- sum over modes of factor(m) * source_m, m over the modes that both grids have below their Nyquist planes.
template <class Factor>
void fill_modes(PeriodicGrid& target, const PeriodicGrid& source, const Factor& factor) {
  target.clear();
  const int first = target.modes().along[2].first;
  visit_common_modes(source, target, [&](int mx, int my, const PencilRange& mz, const Complex* from) {
    Complex* to = target.mode_row(target.index_of(mx), target.index_of(my)) + (mz.first - first);
    for (int i = 0; i < mz.count(); ++i) to[i] = factor(std::array<int, 3>{mx, my, mz.first + i}, from[i]);
  });
}

double square(const std::array<int, 3>& m) {
  return static_cast<double>(m[0]) * m[0] + static_cast<double>(m[1]) * m[1] + static_cast<double>(m[2]) * m[2];
}

// target <- phi,ij on its points, where lap phi = density.
void set_tidal_component(PeriodicGrid& target, const PeriodicGrid& density, int i, int j) {
  fill_modes(target, density, [i, j](const std::array<int, 3>& m, Complex value) {
    const double m2 = square(m);
    return m2 > 0 ? value * (static_cast<double>(m[i]) * m[j] / m2) : Complex(0);
  });
  target.to_points();
}

// target <- operation(target, a, b), point by point.
template <class Operation>
void combine(PeriodicGrid& target, const PeriodicGrid& a, const PeriodicGrid& b, const Operation& operation) {
  const int n = target.n();
  const PencilRange x = target.points().along[0], y = target.points().along[1];
#pragma omp parallel for collapse(2) schedule(static)
  for (int ix = x.first; ix < x.end; ++ix) {
    for (int iy = y.first; iy < y.end; ++iy) {
      double* t = target.row(ix, iy);
      const double *u = a.row(ix, iy), *v = b.row(ix, iy);
      for (int iz = 0; iz < n; ++iz) t[iz] = operation(t[iz], u[iz], v[iz]);
    }
  }
}

// Modes of sum_{i<j} phi,ii phi,jj - phi,ij^2. A product has modes up to twice the highest one; on a grid of 3/2 the
// points none of them aliases to a mode of the lattice.
PeriodicGrid second_order_source(const PeriodicGrid& density, bool dealias) {
  const int n = density.n();
  const int points = dealias ? (3 * n / 2 + 1) / 2 * 2 : n;
  const auto make_grid = [&density](int side) { return PeriodicGrid(side, density.ranks(), density.message_bytes()); };
  PeriodicGrid source = make_grid(points);
  {
    PeriodicGrid a = make_grid(points), b = make_grid(points);
    const auto add_product = [](double t, double x, double y) { return t + x * y; };
    set_tidal_component(a, density, 0, 0);
    set_tidal_component(b, density, 1, 1);
    combine(source, a, b, add_product);
    combine(a, a, b, [](double, double x, double y) { return x + y; });
    set_tidal_component(b, density, 2, 2);
    combine(source, a, b, add_product);
    for (const auto& [i, j] : {std::array{0, 1}, std::array{0, 2}, std::array{1, 2}}) {
      set_tidal_component(b, density, i, j);
      combine(source, b, b, [](double t, double x, double y) { return t - x * y; });
    }
  }
  source.to_modes();
  PeriodicGrid kept = make_grid(n);
  fill_modes(kept, source, [](const std::array<int, 3>&, Complex value) { return value; });
  return kept;
}

// The divergence -(first * density - second * source) of a curl-free vector field, in modes; the grids have the same
// size.
struct Divergence {
  const PeriodicGrid& density;
  const PeriodicGrid* source;  // null: none of second order
  double first, second;
};

// Component `axis` of the vector field, on the points of `target`, a grid of the same size.
void set_vector_component(PeriodicGrid& target, const Divergence& of, int axis, double box_size) {
  const double inverse_k1 = box_size / (2 * std::numbers::pi);
  fill_modes(target, of.density, [&](const std::array<int, 3>& m, Complex value) {
    const double m2 = square(m);
    if (m2 == 0) return Complex(0);
    Complex divergence = of.first * value;
    if (of.source != nullptr) {
      const Complex* modes = of.source->mode_row(of.source->index_of(m[0]), of.source->index_of(m[1]));
      divergence -= of.second * modes[m[2] - of.source->modes().along[2].first];
    }
    return Complex(0, inverse_k1 * m[axis] / m2) * divergence;
  });
  target.to_points();
}

double wrap(double x, double box_size) {
  const double wrapped = x - box_size * std::floor(x / box_size);
  return wrapped < box_size ? wrapped : 0;
}

SnapshotHeader make_header(const Cosmology& cosmology, double box_size, double redshift) {
  SnapshotHeader header;
  static_cast<Background&>(header) = cosmology.background();
  header.comoving = true;
  header.time = 1 / (1 + redshift);
  header.redshift = redshift;
  header.box_size = box_size;
  header.units = cosmology.units();
  return header;
}

// The particles of some sites of the lattice, at rest on them.
Snapshot make_lattice(int n, const Share& sites, double box_size, const Cosmology& cosmology) {
  const auto side = static_cast<std::uint64_t>(n);
  const double all = static_cast<double>(side * side * side);
  Snapshot snapshot;
  snapshot.resize(sites.size());
  std::ranges::fill(snapshot.masses,
                    static_cast<float>(cosmology.mean_density() * box_size * box_size * box_size / all));
#pragma omp parallel for schedule(static)
  for (std::uint64_t i = sites.first; i < sites.end; ++i) {
    snapshot.positions[i - sites.first] = {box_size * static_cast<double>(i / (side * side)) / n,
                                           box_size * static_cast<double>(i / side % side) / n,
                                           box_size * static_cast<double>(i % side) / n};
    snapshot.ids[i - sites.first] = i + 1;
  }
  return snapshot;
}

}  // namespace

// ---- the random density ---------------------------------------------------------------------------------------------

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
                                 int n, const Communicator& ranks, std::size_t message_bytes) {
  PeriodicGrid grid(n, ranks, message_bytes);
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

// ---- displacement ---------------------------------------------------------------------------------------------------

Snapshot displace_lattice(const PeriodicGrid& density, const CosmologicalIcParameters& parameters,
                          const Cosmology& cosmology) {
  const int n = density.n();
  const double box = parameters.box_size;
  check(n, box, parameters.redshift);
  const double a = 1 / (1 + parameters.redshift);
  const Growth growth = cosmology.growth(a);
  std::optional<PeriodicGrid> source;
  if (parameters.second_order) source = second_order_source(density, parameters.dealias);
  const PeriodicGrid* second = source ? &*source : nullptr;

  const Share sites = lattice_share(density, density.ranks().rank());
  Snapshot snapshot = make_lattice(n, sites, box, cosmology);
  snapshot.header = make_header(cosmology, box, parameters.redshift);
  const double speed = a * cosmology.hubble(a);  // v = a dx/dt = a H dx/dlna
  PeriodicGrid field(n, density.ranks(), density.message_bytes());
  for (int axis = 0; axis < 3; ++axis) {
    set_vector_component(field, {density, second, growth.d1, growth.d2}, axis, box);
    visit_share(field, [&](std::uint64_t first, int count, const double* displacements) {
      for (int i = 0; i < count; ++i) {
        double& x = snapshot.positions[first - sites.first + i][axis];
        x = wrap(x + displacements[i], box);
      }
    });
    const double first_rate = speed * growth.f1 * growth.d1, second_rate = speed * growth.f2 * growth.d2;
    set_vector_component(field, {density, second, first_rate, second_rate}, axis, box);
    visit_share(field, [&](std::uint64_t first, int count, const double* velocities) {
      for (int i = 0; i < count; ++i) {
        snapshot.velocities[first - sites.first + i][axis] = static_cast<float>(velocities[i]);
      }
    });
  }
  return snapshot;
}

Snapshot make_cosmological_ic(const CosmologicalIcParameters& parameters, const Cosmology& cosmology,
                              const PowerSpectrum& power, const Communicator& ranks) {
  check(parameters.particles_per_side, parameters.box_size, parameters.redshift);
  const GaussianFieldParameters field = {.seed = parameters.seed,
                                         .fixed_amplitudes = parameters.fixed_amplitudes,
                                         .flip_phases = parameters.flip_phases};
  const PeriodicGrid density =
      make_linear_density(field, power, parameters.box_size, parameters.particles_per_side, ranks);
  return displace_lattice(density, parameters, cosmology);
}

Snapshot make_pancake(const PancakeParameters& parameters, const Cosmology& cosmology, const Communicator& ranks) {
  const int n = parameters.particles_per_side;
  check(n, parameters.box_size, parameters.redshift);
  std::array<int, 3> m = parameters.wave;
  const auto too_short = [n](int waves) { return std::abs(waves) >= n / 2; };
  if (std::any_of(m.begin(), m.end(), too_short) || m == std::array<int, 3>{0, 0, 0}) {
    throw Error("Cannot make this pancake", "its wave does not fit the lattice",
                "give waves along each side, not all 0, each below half the particles a side");
  }
  if (!(parameters.collapse_redshift > -1 && parameters.collapse_redshift < parameters.redshift)) {
    throw Error("Cannot make this pancake", "it would have collapsed before the start",
                "give a collapse redshift below the starting redshift");
  }
  // Both members of the pair where both are stored (mz = 0), else the one with mz > 0.
  const double amplitude = 0.5 / cosmology.growth(1 / (1 + parameters.collapse_redshift)).d1;
  PeriodicGrid density(n, ranks);
  const PencilRange y = density.modes().along[1], z = density.modes().along[2];
  for (int sign : {1, -1}) {
    const int my = density.index_of(sign * m[1]), mz = sign * m[2];
    if (my < y.first || my >= y.end || mz < z.first || mz >= z.end) continue;
    density.mode_row(density.index_of(sign * m[0]), my)[mz - z.first] = amplitude;
  }
  CosmologicalIcParameters lattice;
  lattice.box_size = parameters.box_size;
  lattice.redshift = parameters.redshift;
  lattice.second_order = false;  // it vanishes for a plane wave
  return displace_lattice(density, lattice, cosmology);
}

}  // namespace maki
