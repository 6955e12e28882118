#include "kernels/mesh/mesh_solver.cuh"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/device/launch.cuh"
#include "kernels/mesh/cloud.hpp"

namespace maki {
namespace {

// The Green's function of the mesh between two cells, by distance along each axis in cells (0, 1, ..., S - 1), or
// between cells of the two interlaced meshes (1/2, 3/2, ..., S - 1/2). With the analytic gradient it is the potential,
// its sign that of an attraction; else the acceleration along the first axis. Tables of S^3 numbers for unit mass,
// weighted like the meshes when they are combined: first mesh to itself, between both, second to itself.
enum Table { kFirst, kBetween, kSecond, kTables };

using Weights = std::vector<std::vector<double>>;  // [distance][mode along one axis]

// sum_abc G(a, b, c) x[i][a] y[j][b] y[l][c] for all i, j, l.
std::vector<double> contract(const std::vector<float>& octant, const Weights& x, const Weights& y) {
  const std::size_t side = x[0].size(), s = x.size();
  std::vector<double> lines(side * side * s, 0.0), planes(side * s * s, 0.0), out(s * s * s, 0.0);
  for (std::size_t line = 0; line < side * side; ++line)
    for (std::size_t l = 0; l < s; ++l)
      for (std::size_t c = 0; c < side; ++c) lines[line * s + l] += octant[line * side + c] * y[l][c];
  for (std::size_t a = 0; a < side; ++a)
    for (std::size_t j = 0; j < s; ++j)
      for (std::size_t b = 0; b < side; ++b)
        for (std::size_t l = 0; l < s; ++l) planes[(a * s + j) * s + l] += lines[(a * side + b) * s + l] * y[j][b];
  for (std::size_t i = 0; i < s; ++i)
    for (std::size_t a = 0; a < side; ++a)
      for (std::size_t jl = 0; jl < s * s; ++jl) out[i * s * s + jl] += planes[a * s * s + jl] * x[i][a];
  return out;
}

// A smaller mesh of the same cells: periodic images of a cloud pull it equally from both sides.
MeshOptions small_mesh(const MeshOptions& options, const ForceLaw& law) {
  MeshOptions small = options;
  const int enough = std::max(64, 8 * static_cast<int>(std::ceil(law.r_cut * static_cast<float>(options.cells))));
  small.cells = std::min(options.cells, enough);
  return small;
}

std::vector<double> green_tables(const MeshOptions& options, ForceLaw law) {
  const MeshOptions small = small_mesh(options, law);
  const double ratio = static_cast<double>(options.cells) / small.cells;
  law.r_cut = static_cast<float>(law.r_cut * ratio);
  const std::vector<float> octant = influence_function(small, law, Influence::kForce);
  const std::vector<float> d = gradient_wave_numbers(small.cells, small.gradient);
  const bool potential = options.gradient == Gradient::kAnalytic;
  const int half = small.cells / 2, s = static_cast<int>(options.assignment);
  // Modes k and -k count as two, 0 and the Nyquist plane as one.
  const auto weights = [&](double first_distance, bool nyquist, bool gradient) {
    Weights all(static_cast<std::size_t>(s), std::vector<double>(static_cast<std::size_t>(half) + 1, 0.0));
    for (int i = 0; i < s; ++i) {
      for (int a = 0; a <= half; ++a) {
        if (a == half && !nyquist) continue;
        const double angle = 2 * std::numbers::pi * a * (first_distance + i) / small.cells;
        const double times = a == 0 || a == half ? 1 : 2;
        all[i][a] = times * (gradient ? -d[a] * std::sin(angle) : std::cos(angle));
      }
    }
    return all;
  };
  const auto table = [&](double first_distance, bool nyquist) {
    return contract(octant, weights(first_distance, nyquist, !potential), weights(first_distance, nyquist, false));
  };
  const std::vector<double> all = table(0, true), same = table(0, false), between = table(0.5, false);
  const bool full = options.interlacing == Interlacing::kFull, none = options.interlacing == Interlacing::kNone;
  const double share = none ? 1 : full ? 0.25 : 0.5;
  const double unit = potential ? ratio * options.cells : ratio * ratio;  // mass / side^2
  std::vector<double> tables(kTables * same.size());
  for (std::size_t i = 0; i < same.size(); ++i) {
    // The Nyquist planes belong to the first mesh alone (mesh.hpp).
    tables[kFirst * same.size() + i] = unit * (share * same[i] + all[i] - same[i]);
    tables[kBetween * same.size() + i] = unit * share * between[i];
    tables[kSecond * same.size() + i] = unit * share * same[i];
  }
  return tables;
}

// A particle's cloud on one of both meshes, along one axis: its first cell, the integer weights of assignment, and the
// weights and slopes of interpolation.
template <int S>
struct CloudOnAxis {
  std::int32_t first;
  std::uint32_t units[S];
  float weight[S], slope[S];
};

struct SelfForceJob {
  const SourceParticle* particles;
  VectorView acceleration;
  const double* tables;
  double heavy;  // mass
  std::uint32_t cells;
  int meshes_in, meshes_out;
  // Members of MassUnit.
  int bits;
  std::uint32_t equal_units;
  double units_per_mass, quantum;
  std::uint64_t half, kept;  // shed_bits
};

template <int S, bool kSlopes>
struct SubtractSelfForce {
  SelfForceJob job;

  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = job.particles[i];
    if (!(p.mass > job.heavy)) return;
    double force[3] = {0, 0, 0};
    for (int in = 0; in < job.meshes_in; ++in)
      for (int out = 0; out < job.meshes_out; ++out) add(p, in, out, force);
    job.acceleration.x[i] -= static_cast<float>(force[0]);
    job.acceleration.y[i] -= static_cast<float>(force[1]);
    job.acceleration.z[i] -= static_cast<float>(force[2]);
  }

  MAKI_HD void cloud(const SourceParticle& p, int mesh, CloudOnAxis<S>* axes) const {
    const std::uint32_t at[3] = {p.x, p.y, p.z};
    for (int axis = 0; axis < 3; ++axis) {
      const MeshPosition place = mesh_position<S>(at[axis], job.cells, static_cast<std::uint32_t>(mesh));
      axes[axis].first = place.first;
      integer_weights<S>(place.fraction, job.bits, axes[axis].units);
      float_weights<S>(place.fraction, axes[axis].weight);
      float_slopes<S>(place.fraction, axes[axis].slope);
    }
  }

  // The force of the cloud on mesh `in` on the particle, interpolated from mesh `out`.
  MAKI_HD void add(const SourceParticle& p, int in, int out, double* force) const {
    CloudOnAxis<S> from[3], to[3];
    cloud(p, in, from);
    cloud(p, out, to);
    const double* table = job.tables + (in != out ? kBetween : in ? kSecond : kFirst) * S * S * S;
    std::uint32_t in_x[S], in_row[S];
    split_units<S>(units_of(p.mass, job.equal_units, job.units_per_mass), job.bits, from[0].units, in_x);
    // Twice the distances of the first cells; cells of the second mesh lie half a cell before those of the first.
    int twice[3];
    for (int axis = 0; axis < 3; ++axis) twice[axis] = 2 * (to[axis].first - from[axis].first) + in - out;
    for (int x = 0; x < S; ++x) {
      split_units<S>(in_x[x], job.bits, from[1].units, in_row);
      for (int y = 0; y < S; ++y) {
        for (int z = 0; z < S; ++z) {
          const std::uint64_t count = (static_cast<std::uint64_t>(in_row[y]) * from[2].units[z] + job.half) & job.kept;
          const int away[3] = {twice[0] - 2 * x, twice[1] - 2 * y, twice[2] - 2 * z};
          add_cell(static_cast<double>(count) * job.quantum, away, to, table, force);
        }
      }
    }
  }

  // The pull of one cell's mass; `away`: twice the distance from it to the first cell of `to`.
  MAKI_HD void add_cell(double mass, const int* away, const CloudOnAxis<S>* to, const double* table,
                        double* force) const {
    double sum[3] = {0, 0, 0};
    for (int x = 0; x < S; ++x) {
      for (int y = 0; y < S; ++y) {
        for (int z = 0; z < S; ++z) {
          const int d[3] = {away[0] + 2 * x, away[1] + 2 * y, away[2] + 2 * z};
          const int i[3] = {(d[0] < 0 ? -d[0] : d[0]) / 2, (d[1] < 0 ? -d[1] : d[1]) / 2,
                            (d[2] < 0 ? -d[2] : d[2]) / 2};
          if constexpr (kSlopes) {
            const double green = table[(i[0] * S + i[1]) * S + i[2]];
            sum[0] += green * to[0].slope[x] * to[1].weight[y] * to[2].weight[z];
            sum[1] += green * to[0].weight[x] * to[1].slope[y] * to[2].weight[z];
            sum[2] += green * to[0].weight[x] * to[1].weight[y] * to[2].slope[z];
          } else {
            const double weight = static_cast<double>(to[0].weight[x]) * to[1].weight[y] * to[2].weight[z];
            for (int axis = 0; axis < 3; ++axis) {
              const int first = i[axis], second = i[axis == 0 ? 1 : 0], third = i[axis == 2 ? 1 : 2];
              const double green = table[(first * S + second) * S + third];
              sum[axis] += d[axis] < 0 ? -green * weight : green * weight;
            }
          }
        }
      }
    }
    for (int axis = 0; axis < 3; ++axis) force[axis] += mass * sum[axis];
  }
};

}  // namespace

void SelfForce::subtract(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                         VectorView acceleration) {
  const double heavy = std::min(kHeavy * unit.mean_mass, kSparse * static_cast<double>(unit.mean) * unit.quantum);
  if (unit.equal_units > 0 && unit.mean_mass <= heavy) return;
  if (!tables_) tables_.emplace("mesh.self_force").upload(stream, green_tables(options_, law_));
  const bool none = options_.interlacing == Interlacing::kNone, full = options_.interlacing == Interlacing::kFull;
  const SelfForceJob job{particles,
                         acceleration,
                         tables_->data(),
                         heavy,
                         static_cast<std::uint32_t>(options_.cells),
                         none ? 1 : 2,
                         full ? 2 : 1,
                         unit.bits,
                         unit.equal_units,
                         unit.units_per_mass,
                         unit.quantum,
                         MassUnit::half_of(unit.shed_bits),
                         MassUnit::kept_of(unit.shed_bits)};
  for_cloud(options_.assignment, [&]<int S>() {
    if (options_.gradient == Gradient::kAnalytic)
      launch(stream, "mesh.self_force", n, SubtractSelfForce<S, true>{job});
    else
      launch(stream, "mesh.self_force", n, SubtractSelfForce<S, false>{job});
  });
}

}  // namespace maki
