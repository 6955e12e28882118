#include "kernels/mesh/assign_cuda.cuh"
#include "kernels/mesh/count_masses.hpp"

namespace maki {

struct MassCounter::Work {
  const SourceParticle* particles = nullptr;
  std::size_t n = 0;
  MassUnit unit;
  CellBox box;
};

MassCounter::MassCounter(Assignment cloud) : cloud_(cloud), work_(std::make_unique<Work>()) {}
MassCounter::~MassCounter() = default;
std::size_t MassCounter::bytes() const { return 0; }

void MassCounter::take(const Stream&, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                       const CellBox& box) {
  *work_ = {particles, n, unit, box};
}

void MassCounter::count(const Stream& stream, bool shifted, std::uint64_t* counts) {
  const Work& w = *work_;
  static_assert(sizeof(cuda::Count) == sizeof(std::uint64_t));
  fill_zero(stream, counts, w.box.size() * sizeof(std::uint64_t));
  cuda::assign_counts(stream, w.particles, w.n, w.unit, w.box, cloud_, shifted ? 1 : 0,
                      reinterpret_cast<cuda::Count*>(counts));
}

}  // namespace maki
