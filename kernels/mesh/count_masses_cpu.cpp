#include <optional>

#include "kernels/mesh/blocks_cpu.hpp"
#include "kernels/mesh/count_masses.hpp"

namespace maki {

struct MassCounter::Work {
  std::optional<ParticleBlocks> blocks;
};

MassCounter::MassCounter(Assignment cloud) : cloud_(cloud), work_(std::make_unique<Work>()) {}
MassCounter::~MassCounter() = default;
std::size_t MassCounter::bytes() const { return work_->blocks ? work_->blocks->bytes() : 0; }

void MassCounter::take(const Stream&, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                       const CellBox& box) {
  auto& blocks = work_->blocks;
  if (!blocks || blocks->box() != box) blocks.emplace(box, cloud_);
  blocks->sort(particles, n, unit);
}

void MassCounter::count(const Stream& stream, bool shifted, std::uint64_t* counts) {
  ParticleBlocks& blocks = *work_->blocks;
  const CellBox& box = blocks.box();
  const int m = box.cells;
  const std::size_t plane = static_cast<std::size_t>(box.extent[1]) * static_cast<std::size_t>(box.extent[2]);
  fill_zero(stream, counts, box.size() * sizeof(std::uint64_t));
  const auto plane_at = [&](int x) { return counts + static_cast<std::size_t>(x < 0 ? x + m : x % m) * plane; };
  for (int colour = 0; colour < 8; ++colour) {
    const int x = colour >> 2, y = colour >> 1 & 1, z = colour & 1;
#pragma omp parallel for collapse(3) schedule(dynamic, 1)
    for (int bx = x; bx < blocks.axis(0).count; bx += 2)
      for (int by = y; by < blocks.axis(1).count; by += 2)
        for (int bz = z; bz < blocks.axis(2).count; bz += 2) blocks.gather({bx, by, bz}, shifted ? 1 : 0, plane_at);
  }
}

void counts_to_masses(const Stream&, const CountBox& box, const MassUnit& unit, std::uint64_t* counts, float* mesh) {
  const auto quantum = static_cast<float>(unit.quantum);
#pragma omp parallel for collapse(2) schedule(static)
  for (std::size_t x = 0; x < box.count[0]; ++x)
    for (std::size_t y = 0; y < box.count[1]; ++y)
      mesh_kernels().convert_row(counts + box.count_steps[0] * x + box.count_steps[1] * y,
                                 static_cast<int>(box.count[2]), unit.mean, quantum,
                                 mesh + box.mesh_steps[0] * x + box.mesh_steps[1] * y);
}

}  // namespace maki
