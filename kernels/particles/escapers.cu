#include "kernels/particles/escapers.hpp"

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"

namespace maki {
namespace {

MAKI_HD bool beyond(std::uint32_t coordinate, std::int64_t reach) {
  const std::int64_t d = signed_difference(coordinate, 1u << 31);
  return d > reach || -d > reach;
}

struct MarkOutside {
  const SourceParticle* source;
  std::int64_t reach;
  std::uint32_t outside;  // what is written for those outside: 1 to select them, 0 to select the others
  std::uint32_t* selected;
  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = source[i];
    const bool out = beyond(p.x, reach) || beyond(p.y, reach) || beyond(p.z, reach);
    selected[i] = out ? outside : 1 - outside;
  }
};

struct ParticleView {
  SourceParticle* source;
  Remainder* remainder;
  VectorView momentum;
  std::uint64_t* id;
};

ParticleView view_of(Particles& particles) {
  return {particles.source.data(), particles.remainder.data(), particles.momentum.view(), particles.id.data()};
}

struct CopySelected {
  ParticleView from;
  ParticleView to;
  const std::uint32_t* indices;
  MAKI_HD void operator()(std::size_t k) const {
    const std::uint32_t i = indices[k];
    to.source[k] = from.source[i];
    to.remainder[k] = from.remainder[i];
    to.momentum.x[k] = from.momentum.x[i];
    to.momentum.y[k] = from.momentum.y[i];
    to.momentum.z[k] = from.momentum.z[i];
    to.id[k] = from.id[i];
  }
};

Particles select(const Stream& stream, Particles& particles, std::int64_t reach, bool outside) {
  const std::size_t n = particles.size();
  DeviceBuffer<std::uint32_t> selected("escapers.selected", n), indices("escapers.selected");
  launch(stream, "mark_outside", n, MarkOutside{particles.source.data(), reach, outside ? 1u : 0u, selected.data()});
  const std::uint32_t count = select_flagged(stream, selected.data(), n, indices);
  Particles chosen;
  chosen.resize(count);
  launch(stream, "copy_selected", count, CopySelected{view_of(particles), view_of(chosen), indices.data()});
  stream.synchronize();  // the scratch arrays end here
  return chosen;
}

}  // namespace

HostParticles set_aside(const Stream& stream, Particles& particles, std::int64_t reach) {
  const Particles escapers = select(stream, particles, reach, true);
  particles = select(stream, particles, reach, false);
  return download_particles(stream, escapers);
}

}  // namespace maki
