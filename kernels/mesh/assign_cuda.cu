// One integer mesh, used for one float mesh after the other.
#include <string>

#include "kernels/error.hpp"
#include "kernels/mesh/assign_cuda.cuh"
#include "kernels/mesh/counts_to_mesh.cuh"

namespace maki {
struct MassAssigner::Work {
  DeviceBuffer<cuda::Count> own{"mesh.counts"};
  cuda::Count* counts = nullptr;
};

MassAssigner::MassAssigner(int cells, Assignment assignment, RealFft3d* lender)
    : cells_(cells), assignment_(assignment), work_(std::make_unique<Work>()) {
  if (cells < 8 || cells % 2)
    throw Error("a mesh of " + std::to_string(cells) + " cells a side", "it has to be even and at least 8",
                "choose an even number from 8 up");
  const auto m = static_cast<std::size_t>(cells), size = m * m * m;
  if (!lender) work_->own.resize(size);
  work_->counts = lender ? static_cast<cuda::Count*>(lender->lend(size * sizeof(cuda::Count))) : work_->own.data();
}

MassAssigner::~MassAssigner() = default;

std::size_t MassAssigner::bytes() const { return work_->own.capacity() * sizeof(cuda::Count); }

void MassAssigner::assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                          float* mesh, float* shifted) {
  const auto m = static_cast<std::size_t>(cells_);
  for (float* out : {mesh, shifted}) {
    if (!out) continue;
    fill_zero(stream, work_->counts, m * m * m * sizeof(cuda::Count));
    cuda::assign_counts(stream, particles, n, unit, CellBox::whole(cells_), assignment_, out == mesh ? 0 : 1,
                        work_->counts);
    launch_counts_to_mesh(stream, reinterpret_cast<const std::uint64_t*>(work_->counts), cells_, cells_, cells_, unit,
                          out, 2 * (m / 2 + 1));
  }
}

}  // namespace maki
