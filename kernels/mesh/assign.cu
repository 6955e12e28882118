#include "kernels/mesh/assign.hpp"

#include "kernels/device/buffer.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"

namespace maki {

CloudReach cloud_reach(Assignment cloud, bool interlaced) {
  if (cloud == Assignment::kCic) return {0, interlaced ? 2 : 1};
  if (cloud == Assignment::kTsc) return {1, 2};
  return {1, interlaced ? 3 : 2};
}

namespace {

MAKI_HD int cell_of(std::uint32_t coordinate, int m) {
  return static_cast<int>(static_cast<std::uint64_t>(coordinate) * static_cast<std::uint32_t>(m) >> 32);
}

struct MarkPlanes {
  const SourceParticle* particles;
  std::uint32_t* marks;  // 3 x m
  int m;

  MAKI_HD void mark(int axis, std::uint32_t coordinate) const {
    std::uint32_t* at = marks + axis * m + cell_of(coordinate, m);
#if defined(__CUDA_ARCH__)
    *static_cast<volatile std::uint32_t*>(at) = 1;  // many threads write the same value
#else
    if (!__atomic_load_n(at, __ATOMIC_RELAXED)) __atomic_store_n(at, 1u, __ATOMIC_RELAXED);
#endif
  }
  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = particles[i];
    mark(0, p.x);
    mark(1, p.y);
    mark(2, p.z);
  }
};

struct Within {
  const SourceParticle* particles;
  MeshBox box;

  MAKI_HD bool along(int axis, std::uint32_t coordinate) const {
    const int from = cell_of(coordinate, box.cells) - box.origin[axis];
    return (from < 0 ? from + box.cells : from) < box.extent[axis];
  }
  MAKI_HD bool operator()(std::size_t i) const {
    const SourceParticle p = particles[i];
    return along(0, p.x) && along(1, p.y) && along(2, p.z);
  }
};

}  // namespace

std::array<std::vector<std::uint32_t>, 3> occupied_planes(const Stream& stream, const SourceParticle* particles,
                                                          std::size_t n, int cells) {
  const auto m = static_cast<std::size_t>(cells);
  DeviceBuffer<std::uint32_t> marks("mesh.occupied", 3 * m);
  marks.fill_zero(stream);
  launch(stream, "mesh.occupied", n, MarkPlanes{particles, marks.data(), cells});
  const std::vector<std::uint32_t> all = marks.download(stream);
  std::array<std::vector<std::uint32_t>, 3> planes;
  for (std::size_t axis = 0; axis < 3; ++axis)
    planes[axis].assign(all.begin() + static_cast<std::ptrdiff_t>(axis * m),
                        all.begin() + static_cast<std::ptrdiff_t>((axis + 1) * m));
  return planes;
}

bool all_within(const Stream& stream, const SourceParticle* particles, std::size_t n, const MeshBox& box) {
  return reduce_over(stream, "mesh.all_within",
                     Reduction{n, Within{particles, box}, true, thrust::logical_and<bool>()});
}

double assigner_bytes(int cells, double particles) {
  const double m = cells;
  const double counts = MassCounter::makes_masses() ? 0 : sizeof(std::uint64_t) * m * m * (m + 2);
  return counts + counter_bytes(m * m, particles);
}

MassAssigner::MassAssigner(Assignment cloud, RealFft3d& fft) : cells_(fft.cells()), counter_(cloud) {
  const auto m = static_cast<std::size_t>(cells_);
  counts_ = static_cast<std::uint64_t*>(fft.lend(m * m * m * sizeof(std::uint64_t)));
  rows_.assign(m * m, 1);
  box_ = {{{0, 0, 0}, {m, m, m}, {m * m, m}, 0, {fft.lines() * fft.row(), fft.row()}}};
}

void MassAssigner::assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                          float* mesh, float* shifted) {
  counter_.take(stream, particles, n, unit, MeshBox::whole(cells_));
  for (float* const out : {mesh, shifted}) {
    if (!out) continue;
    counter_.count(stream, out == shifted, counts_, {rows_.data(), box_, unit, out});
    if (!MassCounter::makes_masses()) counts_to_masses(stream, box_.front(), unit, counts_, out);
  }
}

}  // namespace maki
