#include "kernels/mesh/mesh_solver.cuh"

#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/device/launch.cuh"
#include "kernels/mesh/cloud.hpp"

namespace maki {
namespace {

struct FindPlace {
  const SourceParticle* particles;
  float mass;
  std::uint64_t* place;
  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = particles[i];
    if (p.mass != mass) return;
    place[0] = p.x;
    place[1] = p.y;
    place[2] = p.z;
  }
};

// The phases exp(2 pi i n c / m) of a mode n at the cells c of a particle's cloud.
template <int S>
struct WavesAtCells {
  const std::uint64_t* place;
  const double *cos, *sin;
  std::uint32_t cells, half_cells;

  MAKI_HD std::uint32_t first(int axis) const {
    const int cell = mesh_position<S>(static_cast<std::uint32_t>(place[axis]), cells, half_cells).first;
    return static_cast<std::uint32_t>(cell + static_cast<int>(cells)) % cells;
  }
  MAKI_HD std::uint32_t index(int axis, int cell, int mode) const {
    const std::uint32_t c = (first(axis) + static_cast<std::uint32_t>(cell)) % cells;
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(c) * static_cast<std::uint32_t>(mode) % cells);
  }
};

// The weight of a mode that stands for its conjugate too; `n`: along the axis of which half the modes are stored.
MAKI_HD double times(int n, int m) { return n == 0 || 2 * n == m ? 1.0 : 2.0; }

// The sum along one row of modes, at S cells along it.
template <int S>
struct SumRow {
  WavesAtCells<S> waves;
  const Complex* modes;
  RowBlock rows;
  int axis, length, stride, m;
  bool whole;
  double* lines;

  MAKI_HD void operator()(std::size_t row) const {
    double sum[2 * S] = {};
    std::uint32_t step[S], at[S];
    for (int c = 0; c < S; ++c) {
      step[c] = waves.index(axis, c, 1);
      at[c] = 0;
    }
    const Complex* const values = modes + rows.first(static_cast<std::uint32_t>(row), stride);
    for (int z = 0; z < length; ++z) {
      const double factor = whole ? 1.0 : times(z, m), re = factor * values[z].re, im = factor * values[z].im;
      for (int c = 0; c < S; ++c) {
        const double cos = waves.cos[at[c]], sin = waves.sin[at[c]];
        sum[2 * c] += re * cos - im * sin;
        sum[2 * c + 1] += re * sin + im * cos;
        at[c] += step[c];
        if (at[c] >= waves.cells) at[c] -= waves.cells;
      }
    }
    for (int i = 0; i < 2 * S; ++i) lines[row * (2 * S) + i] = sum[i];
  }
};

// The sum over the rows of one plane, at one of S^3 cells; each row's share is rounded to a quantum.
template <int S>
struct SumPlane {
  WavesAtCells<S> waves;
  const double* lines;
  RowBlock rows;
  int axes[3];  // of the particle, by their places in the order of modes
  int m;
  bool whole;
  double quanta;  // a unit of potential
  std::uint64_t* planes;

  MAKI_HD void operator()(std::size_t i) const {
    const int cell = static_cast<int>(i % (S * S * S)), plane = static_cast<int>(i / (S * S * S));
    const int c[3] = {cell / (S * S), cell / S % S, cell % S};
    const int at[3] = {c[axes[0]], c[axes[1]], c[axes[2]]};
    const std::uint32_t first = waves.index(axes[0], at[0], rows.first_x + plane);
    const std::uint32_t step = waves.index(axes[1], at[1], 1);
    std::uint32_t along = waves.index(axes[1], at[1], rows.first_y);
    std::uint64_t sum = 0;
    for (int y = 0; y < rows.count_y; ++y) {
      const std::uint32_t both = (first + along) % waves.cells;
      const double* const line = lines + 2 * ((static_cast<std::size_t>(plane) * rows.count_y + y) * S + at[2]);
      const double value = line[0] * waves.cos[both] - line[1] * waves.sin[both];
      sum += static_cast<std::uint64_t>(
          static_cast<std::int64_t>(rint(value * quanta * (whole ? times(rows.first_y + y, m) : 1.0))));
      along += step;
      if (along >= waves.cells) along -= waves.cells;
    }
    planes[i] = sum;
  }
};

struct AddPlanes {
  const std::uint64_t* planes;
  int count;
  std::size_t cells;
  std::uint64_t* sums;
  MAKI_HD void operator()(std::size_t cell) const {
    std::uint64_t sum = 0;
    for (int plane = 0; plane < count; ++plane) sum += planes[plane * cells + cell];
    sums[cell] = sum;
  }
};

template <int S>
struct ReplaceAcceleration {
  const SourceParticle* particles;
  float mass;
  const std::uint64_t* sums;
  std::uint32_t cells;
  int outputs;
  double factor;  // from a sum's slope to an acceleration
  VectorView acceleration;

  MAKI_HD void operator()(std::size_t i) const {
    if (particles[i].mass != mass) return;
    double gradient[3] = {0, 0, 0};
    for (int output = 0; output < outputs; ++output) add(particles[i], output, gradient);
    acceleration.x[i] = static_cast<float>(factor * gradient[0]);
    acceleration.y[i] = static_cast<float>(factor * gradient[1]);
    acceleration.z[i] = static_cast<float>(factor * gradient[2]);
  }
  MAKI_HD void add(const SourceParticle& p, int output, double* gradient) const {
    const std::uint32_t at[3] = {p.x, p.y, p.z};
    float weight[3][S], slope[3][S];
    for (int axis = 0; axis < 3; ++axis) {
      const MeshPosition place = mesh_position<S>(at[axis], cells, static_cast<std::uint32_t>(output));
      float_weights<S>(place.fraction, weight[axis]);
      float_slopes<S>(place.fraction, slope[axis]);
    }
    const std::uint64_t* sum = sums + output * S * S * S;
    for (int x = 0; x < S; ++x) {
      for (int y = 0; y < S; ++y) {
        for (int z = 0; z < S; ++z, ++sum) {
          const double potential = static_cast<double>(static_cast<std::int64_t>(*sum));
          gradient[0] += potential * slope[0][x] * weight[1][y] * weight[2][z];
          gradient[1] += potential * weight[0][x] * slope[1][y] * weight[2][z];
          gradient[2] += potential * weight[0][x] * weight[1][y] * slope[2][z];
        }
      }
    }
  }
};

std::size_t cube(Assignment cloud) {
  const auto s = static_cast<std::size_t>(cloud);
  return s * s * s;
}

std::vector<double> unit_circle(int m) {
  std::vector<double> waves(2 * static_cast<std::size_t>(m));
  for (int i = 0; i < m; ++i) {
    waves[static_cast<std::size_t>(i)] = std::cos(2 * std::numbers::pi * i / m);
    waves[static_cast<std::size_t>(m + i)] = std::sin(2 * std::numbers::pi * i / m);
  }
  return waves;
}

}  // namespace

void LoneParticle::find(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                        MeshStorage& storage) {
  if (waves_.empty()) waves_.upload(stream, unit_circle(options_.cells));
  mass_ = unit.lone_mass;
  // Bound on a sum of modes: all mass at one place would give less than 2 / r_cut times the mass.
  const double total = static_cast<double>(unit.mean + 1) * unit.quantum * std::pow(options_.cells, 3.0);
  quantum_ = std::exp2(std::ilogb(8 * total / law_.r_cut) - 61);
  place_.resize(3);
  place_.fill_zero(stream);
  launch(stream, "mesh.lone_place", n, FindPlace{particles, mass_, place_.data()});
  storage.add_over_ranks(stream, place_);
  cells_.resize(2 * cube(options_.assignment));
  cells_.fill_zero(stream);
}

void LoneParticle::sum_modes(const Stream& stream, const Complex* potential, int output, MeshStorage& storage) {
  const ModeBlock modes = storage.modes();
  const int m = options_.cells, length = modes.whole ? m : m / 2 + 1;
  const auto planes = static_cast<std::size_t>(modes.rows.count_x);
  const std::size_t rows = planes * static_cast<std::size_t>(modes.rows.count_y),
                    cube = maki::cube(options_.assignment);
  int axes[3];
  for (int axis = 0; axis < 3; ++axis) axes[storage.mode_axis(axis)] = axis;
  lines_.resize(2 * rows * static_cast<std::size_t>(options_.assignment));
  planes_.resize(planes * cube);
  for_cloud(options_.assignment, [&]<int S>() {
    const WavesAtCells<S> waves{place_.data(), waves_.data(), waves_.data() + m, static_cast<std::uint32_t>(m),
                                static_cast<std::uint32_t>(output)};
    launch(stream, "mesh.lone_rows", rows,
           SumRow<S>{waves, potential, modes.rows, axes[2], length, modes.stride, m, modes.whole, lines_.data()});
    launch(stream, "mesh.lone_planes", planes * cube,
           SumPlane<S>{waves,
                       lines_.data(),
                       modes.rows,
                       {axes[0], axes[1], axes[2]},
                       m,
                       modes.whole,
                       1 / quantum_,
                       planes_.data()});
  });
  launch(stream, "mesh.lone_cells", cube,
         AddPlanes{planes_.data(), modes.rows.count_x, cube, cells_.data() + static_cast<std::size_t>(output) * cube});
}

void LoneParticle::replace(const Stream& stream, const SourceParticle* particles, std::size_t n, int outputs,
                           MeshStorage& storage, VectorView acceleration) {
  storage.add_over_ranks(stream, cells_);
  for_cloud(options_.assignment, [&]<int S>() {
    launch(stream, "mesh.lone_particle", n,
           ReplaceAcceleration<S>{particles, mass_, cells_.data(), static_cast<std::uint32_t>(options_.cells), outputs,
                                  -quantum_ * options_.cells / outputs, acceleration});
  });
}

}  // namespace maki
