// One integer mesh, used in turn for each float mesh.
#include <string>

#include "kernels/error.hpp"
#include "kernels/mesh/assign_cuda.cuh"
#include "kernels/mesh/modes.cuh"

namespace maki {
namespace {

// The padding of a row becomes 0.
struct CountsToMesh {
  const cuda::Count* counts;
  float* mesh;
  int m;
  cuda::MassOfCount mass;

  using Row = const cuda::Count*;
  MAKI_HD Row begin(int x, int y) const {
    return counts + (static_cast<std::size_t>(x) * static_cast<unsigned>(m) + static_cast<unsigned>(y)) *
                        static_cast<unsigned>(m);
  }
  MAKI_HD void at(Row row, int z, std::size_t i) const { mesh[i] = z < m ? mass(row[z]) : 0.0f; }
};

}  // namespace

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

// The mesh of counts lies in the transforms' work space.
double assigner_bytes(int cells, double) {
  const double m = cells;
  return sizeof(cuda::Count) * m * m * (m + 2);
}

std::size_t MassAssigner::bytes() const { return work_->own.capacity() * sizeof(cuda::Count); }

void MassAssigner::assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                          float* mesh, float* shifted) {
  const auto m = static_cast<std::size_t>(cells_);
  const int row = 2 * (cells_ / 2 + 1);
  for (float* out : {mesh, shifted}) {
    if (!out) continue;
    fill_zero(stream, work_->counts, m * m * m * sizeof(cuda::Count));
    cuda::assign_counts(stream, {particles, n, unit, MeshBox::whole(cells_)}, assignment_, out == mesh ? 0 : 1,
                        work_->counts);
    launch_rows(stream, "mesh.to_float", {0, 0, cells_, cells_}, row, row,
                CountsToMesh{work_->counts, out, cells_, cuda::MassOfCount(unit)});
  }
}

}  // namespace maki
