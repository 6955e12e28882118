#include <string>

#include "kernels/device/error.hpp"
#include "kernels/mesh/assign_cuda.cuh"

namespace maki {
namespace {

struct CountsToFloat {
  const cuda::Count* counts;
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

  void fill(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
            std::uint32_t half_cells, float* mesh) {
    counts.fill_zero(stream);
    cuda::assign_counts(stream, particles, n, unit, static_cast<int>(m), assignment, half_cells, counts.data());
    launch(stream, "mesh.to_float", static_cast<std::size_t>(m) * m * (m + 2),
           CountsToFloat{counts.data(), mesh, m, unit.mean, static_cast<float>(unit.quantum)});
  }

  std::uint32_t m;
  Assignment assignment;
  DeviceBuffer<cuda::Count> counts{"mesh.counts"};
};

MassAssigner::MassAssigner(int cells, Assignment assignment) {
  if (cells < 8 || cells % 2)
    throw Error("a mesh of " + std::to_string(cells) + " cells a side", "it has to be even and at least 8",
                "choose an even number from 8 up");
  work_ = std::make_unique<Work>(cells, assignment);
}

MassAssigner::~MassAssigner() = default;

std::size_t MassAssigner::bytes() const { return work_->counts.capacity() * sizeof(cuda::Count); }

MassUnit MassAssigner::assign(const Stream& stream, const SourceParticle* particles, std::size_t n, float* mesh,
                              float* shifted) {
  const MassUnit unit =
      choose_mass_unit(stream, work_->assignment, static_cast<int>(work_->m), particles, n);
  work_->fill(stream, particles, n, unit, 0, mesh);
  if (shifted) work_->fill(stream, particles, n, unit, 1, shifted);
  return unit;
}

}  // namespace maki
