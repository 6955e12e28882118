// Assignment with 64-bit integer atomics in global memory: one integer mesh, used for one float mesh after the other.
#include <string>

#include "kernels/device/buffer.hpp"
#include "kernels/device/error.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/cloud.hpp"

namespace maki {
namespace {

using Count = unsigned long long;

template <int S>
struct AddCloud {
  const SourceParticle* particles;
  Count* counts;
  std::uint32_t m, half_cells;
  int bits;
  std::uint32_t equal_units;
  double units_per_mass;

  __device__ void operator()(std::size_t n) const {
    const SourceParticle p = particles[n];
    const MeshPosition x = mesh_position<S>(p.x, m, half_cells), y = mesh_position<S>(p.y, m, half_cells),
                       z = mesh_position<S>(p.z, m, half_cells);
    std::uint32_t wx[S], wy[S], wz[S], in_x[S], in_row[S];
    integer_weights<S>(x.fraction, bits, wx);
    integer_weights<S>(y.fraction, bits, wy);
    integer_weights<S>(z.fraction, bits, wz);
    split_units<S>(units_of(p.mass, equal_units, units_per_mass), bits, wx, in_x);
    for (int i = 0; i < S; ++i) {
      split_units<S>(in_x[i], bits, wy, in_row);
      const std::size_t plane = static_cast<std::size_t>(wrapped(x.first + i)) * m;
      for (int j = 0; j < S; ++j) {
        Count* row = counts + (plane + wrapped(y.first + j)) * m;
        for (int k = 0; k < S; ++k) atomicAdd(row + wrapped(z.first + k), static_cast<Count>(in_row[j]) * wz[k]);
      }
    }
  }

  __device__ std::uint32_t wrapped(std::int32_t cell) const {
    const auto side = static_cast<std::int32_t>(m);
    return static_cast<std::uint32_t>(cell < 0 ? cell + side : cell >= side ? cell - side : cell);
  }
};

struct CountsToFloat {
  const Count* counts;
  float* mesh;
  std::uint32_t m;
  std::int64_t mean;
  float quantum;
  __device__ void operator()(std::size_t i) const {
    const std::uint32_t row = m + 2;
    const std::size_t line = i / row;
    const auto z = static_cast<std::uint32_t>(i - line * row);
    mesh[i] = z < m ? static_cast<float>(static_cast<std::int64_t>(counts[line * m + z]) - mean) * quantum : 0.0f;
  }
};

}  // namespace

struct MassAssigner::Work {
  Work(int cells, Assignment cloud) : m(static_cast<std::uint32_t>(cells)), assignment(cloud) {
    counts.resize(static_cast<std::size_t>(m) * m * m);
  }

  template <int S>
  void add(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
           std::uint32_t half_cells) {
    launch(stream, "mesh.assign", n,
           AddCloud<S>{particles, counts.data(), m, half_cells, unit.bits, unit.equal_units, unit.units_per_mass});
  }

  void fill(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
            std::uint32_t half_cells, float* mesh) {
    counts.fill_zero(stream);
    if (assignment == Assignment::kCic) add<2>(stream, particles, n, unit, half_cells);
    if (assignment == Assignment::kTsc) add<3>(stream, particles, n, unit, half_cells);
    if (assignment == Assignment::kPcs) add<4>(stream, particles, n, unit, half_cells);
    launch(stream, "mesh.to_float", static_cast<std::size_t>(m) * m * (m + 2),
           CountsToFloat{counts.data(), mesh, m, unit.mean, static_cast<float>(unit.quantum)});
  }

  std::uint32_t m;
  Assignment assignment;
  DeviceBuffer<Count> counts{"mesh.counts"};
};

MassAssigner::MassAssigner(int cells, Assignment assignment) {
  if (cells < 8 || cells % 2)
    throw Error("a mesh of " + std::to_string(cells) + " cells a side", "it has to be even and at least 8",
                "choose an even number from 8 up");
  work_ = std::make_unique<Work>(cells, assignment);
}

MassAssigner::~MassAssigner() = default;

std::size_t MassAssigner::bytes() const { return work_->counts.capacity() * sizeof(Count); }

MassUnit MassAssigner::assign(const Stream& stream, const SourceParticle* particles, std::size_t n, float* mesh,
                              float* shifted) {
  const MassUnit unit =
      choose_mass_unit(stream, work_->assignment, static_cast<int>(work_->m), particles, n);
  work_->fill(stream, particles, n, unit, 0, mesh);
  if (shifted) work_->fill(stream, particles, n, unit, 1, shifted);
  return unit;
}

}  // namespace maki
