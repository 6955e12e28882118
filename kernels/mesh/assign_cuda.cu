#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/assign_cuda.cuh"
#include "kernels/mesh/modes.cuh"

namespace maki {
namespace {

struct CountsToMasses {
  const std::uint64_t* counts;
  float* mesh;
  std::size_t count_plane, count_row, mesh_plane, mesh_row;
  cuda::MassOfCount mass;

  struct Row {
    const std::uint64_t* counts;
    float* mesh;
  };
  MAKI_HD Row begin(int x, int y) const {
    const auto i = static_cast<std::size_t>(x), j = static_cast<std::size_t>(y);
    return {counts + count_plane * i + count_row * j, mesh + mesh_plane * i + mesh_row * j};
  }
  MAKI_HD void at(const Row& row, int z, std::size_t) const { row.mesh[z] = mass(row.counts[z]); }
};

}  // namespace

struct MassCounter::Work {
  cuda::CountTask task{};
};

MassCounter::MassCounter(Assignment cloud) : cloud_(cloud), work_(std::make_unique<Work>()) {}
MassCounter::~MassCounter() = default;
std::size_t MassCounter::bytes() const { return 0; }

void MassCounter::take(const Stream&, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                       const MeshBox& box) {
  work_->task = {particles, n, unit, box};
}

void MassCounter::count(const Stream& stream, bool shifted, std::uint64_t* counts, bool zero) {
  const cuda::CountTask& task = work_->task;
  static_assert(sizeof(cuda::Count) == sizeof(std::uint64_t));
  if (!zero) fill_zero(stream, counts, task.box.size() * sizeof(std::uint64_t));
  cuda::assign_counts(stream, task, cloud_, shifted ? 1 : 0, reinterpret_cast<cuda::Count*>(counts));
}

std::vector<std::uint8_t> MassCounter::planes() const {
  return std::vector<std::uint8_t>(static_cast<std::size_t>(work_->task.box.cells), 1);
}

void MassCounter::count(const Stream& stream, bool shifted, std::uint64_t* counts, const OwnRows&) {
  count(stream, shifted, counts);
}

bool MassCounter::makes_masses() { return false; }

double counter_bytes(double, double) { return 0; }

// `done` is not read: on the GPU count() leaves all rows to this function.
bool counts_to_masses(const Stream& stream, const CountBox& box, const MassUnit& unit, std::uint64_t* counts,
                      float* mesh, const std::uint8_t*) {
  const int length = static_cast<int>(box.count[2]);
  const auto& [plane, row] = box.count_steps;
  launch_rows(stream, "mesh.to_masses", {0, 0, static_cast<int>(box.count[0]), static_cast<int>(box.count[1])}, length,
              length,
              CountsToMasses{counts + box.first[0] * plane + box.first[1] * row + box.first[2], mesh + box.mesh_first,
                             plane, row, box.mesh_steps[0], box.mesh_steps[1], cuda::MassOfCount(unit)});
  return false;
}

}  // namespace maki
