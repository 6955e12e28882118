#include "kernels/particles/particles.hpp"

#include <cmath>
#include <cstring>
#include <string>

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/error.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

namespace {

constexpr std::uint64_t kHalfSide = std::uint64_t{1} << 47;

MAKI_HD void split(std::uint64_t fine, std::uint32_t& coordinate, std::uint16_t& remainder) {
  coordinate = coordinate_of(fine);
  remainder = static_cast<std::uint16_t>(fine);
}

struct DriftParticle {
  SourceParticle* source;
  Remainder* remainder;
  ConstVectorView momentum;
  double factor;  // units of 2^-48 sides per momentum unit

  MAKI_HD void operator()(std::size_t i) const {
    SourceParticle p = source[i];
    Remainder r = remainder[i];
    split(fine_of(p.x, r.x) + rounded_fine(widened(momentum.x[i]) * factor), p.x, r.x);
    split(fine_of(p.y, r.y) + rounded_fine(widened(momentum.y[i]) * factor), p.y, r.y);
    split(fine_of(p.z, r.z) + rounded_fine(widened(momentum.z[i]) * factor), p.z, r.z);
    source[i] = p;
    remainder[i] = r;
  }
};

struct KickParticle {
  VectorView momentum;
  ConstVectorView acceleration;
  double factor;

  MAKI_HD void operator()(std::size_t i) const {
    momentum.x[i] = static_cast<float>(widened(momentum.x[i]) + widened(acceleration.x[i]) * factor);
    momentum.y[i] = static_cast<float>(widened(momentum.y[i]) + widened(acceleration.y[i]) * factor);
    momentum.z[i] = static_cast<float>(widened(momentum.z[i]) + widened(acceleration.z[i]) * factor);
  }
};

// One of the two floats beside `t`, with the probabilities that make t their mean. `chance`: uniform below 2^53.
MAKI_HD float rounded_by_chance(double t, std::uint64_t chance) {
  const float nearest = static_cast<float>(t);
  if (nearest == 0) return nearest;
  const double rest = t - widened(nearest);
  std::uint32_t bits;
  memcpy(&bits, &nearest, sizeof bits);
  bits += std::signbit(rest) == std::signbit(nearest) ? 1u : ~0u;
  float other;
  memcpy(&other, &bits, sizeof other);
  const double distance = std::fabs(widened(other) - widened(nearest));  // a power of two
  return static_cast<double>(chance) * (0x1p-53 * distance) < std::fabs(rest) ? other : nearest;
}

// 64 uniform bits: the output of SplitMix64 (Steele, Lea & Flood 2014, OOPSLA).
MAKI_HD std::uint64_t random_bits(std::uint64_t id, std::uint64_t draw) {
  std::uint64_t z = id * 0x9e3779b97f4a7c15ull + draw;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

struct KickParticleByChance {
  KickParticle sums;
  const std::uint64_t* id;
  std::uint64_t draw;

  MAKI_HD float sum(float momentum, float acceleration, std::uint64_t bits) const {
    return rounded_by_chance(widened(momentum) + widened(acceleration) * sums.factor, bits >> 11);
  }
  MAKI_HD void operator()(std::size_t i) const {
    const VectorView p = sums.momentum;
    const ConstVectorView a = sums.acceleration;
    const std::uint64_t bits = random_bits(id[i], draw);
    p.x[i] = sum(p.x[i], a.x[i], bits);
    p.y[i] = sum(p.y[i], a.y[i], random_bits(bits, draw));
    p.z[i] = sum(p.z[i], a.z[i], random_bits(~bits, draw));
  }
};

struct ShiftCoordinates {
  SourceParticle* source;
  std::uint32_t x, y, z;
  MAKI_HD void operator()(std::size_t i) const {
    source[i].x -= x;
    source[i].y -= y;
    source[i].z -= z;
  }
};

struct HalveCoordinates {
  SourceParticle* source;
  Remainder* remainder;

  MAKI_HD void operator()(std::size_t i) const {
    SourceParticle p = source[i];
    Remainder r = remainder[i];
    split((fine_of(p.x, r.x) + kHalfSide) >> 1, p.x, r.x);
    split((fine_of(p.y, r.y) + kHalfSide) >> 1, p.y, r.y);
    split((fine_of(p.z, r.z) + kHalfSide) >> 1, p.z, r.z);
    source[i] = p;
    remainder[i] = r;
  }
};

void require_same_length(std::size_t expected, std::size_t found, const char* what) {
  if (expected == found) return;
  throw Error("particle arrays differ in length",
              std::to_string(expected) + " positions, " + std::to_string(found) + " " + what);
}

}  // namespace

void Particles::resize(std::size_t n) {
  source.resize(n);
  remainder.resize(n);
  momentum.resize(n);
  id.resize(n);
}

Particles copy_of(const Stream& stream, const Particles& from) {
  Particles to;
  to.source.copy_from(stream, from.source);
  to.remainder.copy_from(stream, from.remainder);
  to.momentum.copy_from(stream, from.momentum);
  to.id.copy_from(stream, from.id);
  return to;
}

void require_rank_holds(std::uint64_t particles) {
  if (particles >> 32 != 0)
    throw Error("there are too many particles for one rank",
                std::to_string(particles) + ", and a rank holds less than 2^32", "start more ranks");
}

void upload_particles(const Stream& stream, Particles& particles, const std::vector<std::array<double, 3>>& fractions,
                      const std::vector<std::array<float, 3>>& momenta, const std::vector<float>& masses,
                      const std::vector<std::uint64_t>& ids) {
  const std::size_t n = fractions.size();
  require_rank_holds(n);
  require_same_length(n, momenta.size(), "momenta");
  require_same_length(n, masses.size(), "masses");
  require_same_length(n, ids.size(), "ids");

  std::vector<SourceParticle> source(n);
  std::vector<Remainder> remainder(n);
  for (std::size_t i = 0; i < n; ++i) {
    split(to_fine(fractions[i][0]), source[i].x, remainder[i].x);
    split(to_fine(fractions[i][1]), source[i].y, remainder[i].y);
    split(to_fine(fractions[i][2]), source[i].z, remainder[i].z);
    source[i].mass = masses[i];
  }
  particles.source.upload(stream, source);
  particles.remainder.upload(stream, remainder);

  std::vector<float> component(n);
  DeviceBuffer<float>* const axes[3] = {&particles.momentum.x, &particles.momentum.y, &particles.momentum.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (std::size_t i = 0; i < n; ++i) component[i] = momenta[i][axis];
    axes[axis]->upload(stream, component);
  }
  particles.id.upload(stream, ids);
  stream.synchronize();
}

HostParticles download_particles(const Stream& stream, const Particles& particles) {
  const std::size_t n = particles.size();
  HostParticles host;
  host.fractions.resize(n);
  host.masses.resize(n);
  const std::vector<SourceParticle> source = particles.source.download(stream);
  const std::vector<Remainder> remainder = particles.remainder.download(stream);
  for (std::size_t i = 0; i < n; ++i) {
    host.fractions[i] = {fraction_of(source[i].x, remainder[i].x), fraction_of(source[i].y, remainder[i].y),
                         fraction_of(source[i].z, remainder[i].z)};
    host.masses[i] = source[i].mass;
  }
  host.momenta = particles.momentum.download(stream);
  host.ids = particles.id.download(stream);
  return host;
}

void drift(const Stream& stream, Particles& particles, double factor) {
  launch(stream, "drift", particles.size(),
         DriftParticle{particles.source.data(), particles.remainder.data(),
                       static_cast<const Particles&>(particles).momentum.view(), factor * kSideToFine});
}

void kick(const Stream& stream, Particles& particles, const VectorArray& acceleration, double factor,
          const std::optional<std::uint64_t>& draw) {
  const KickParticle sums{particles.momentum.view(), acceleration.view(), factor};
  if (draw)
    launch(stream, "kick", particles.size(), KickParticleByChance{sums, particles.id.data(), *draw});
  else
    launch(stream, "kick", particles.size(), sums);
}

void shift_box(const Stream& stream, Particles& particles, const std::array<std::int32_t, 3>& shift) {
  launch(stream, "shift_box", particles.size(),
         ShiftCoordinates{particles.source.data(), static_cast<std::uint32_t>(shift[0]),
                          static_cast<std::uint32_t>(shift[1]), static_cast<std::uint32_t>(shift[2])});
}

void double_box(const Stream& stream, Particles& particles) {
  launch(stream, "double_box", particles.size(), HalveCoordinates{particles.source.data(), particles.remainder.data()});
}

namespace {

constexpr std::uint32_t kMiddle = 1u << 31;  // of the box

struct MarkOutside {
  const SourceParticle* source;
  std::int64_t reach;
  std::uint32_t outside;  // the mark of particles outside: 1 to select them, 0 to select the others
  std::uint32_t* selected;
  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = source[i];
    const bool out = beyond(p.x, kMiddle, reach) || beyond(p.y, kMiddle, reach) || beyond(p.z, kMiddle, reach);
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
  stream.synchronize();  // the scratch arrays are freed here
  return chosen;
}

}  // namespace

HostParticles copies_beyond(const Stream& stream, Particles& particles, std::int64_t reach) {
  return download_particles(stream, select(stream, particles, reach, true));
}

HostParticles set_aside(const Stream& stream, Particles& particles, std::int64_t reach) {
  HostParticles escapers = copies_beyond(stream, particles, reach);
  particles = select(stream, particles, reach, false);
  return escapers;
}

namespace {

struct MakeKeys {
  const SourceParticle* source;
  std::uint64_t* keys;
  std::uint32_t* index;
  MAKI_HD void operator()(std::size_t i) const {
    const SourceParticle p = source[i];
    keys[i] = morton_key(p.x, p.y, p.z);
    index[i] = static_cast<std::uint32_t>(i);
  }
};

template <class T>
struct Gather {
  const std::uint32_t* index;
  const T* from;
  T* to;
  MAKI_HD void operator()(std::size_t i) const { to[i] = from[index[i]]; }
};

// One scratch array at a time, so that the peak memory stays low.
template <class T>
void reorder(const Stream& stream, const DeviceBuffer<std::uint32_t>& index, DeviceBuffer<T>& array) {
  DeviceBuffer<T> sorted(array.name(), array.size());
  launch(stream, "reorder", array.size(), Gather<T>{index.data(), array.data(), sorted.data()});
  array.swap(sorted);
}

void reorder(const Stream& stream, const DeviceBuffer<std::uint32_t>& index, VectorArray& array) {
  reorder(stream, index, array.x);
  reorder(stream, index, array.y);
  reorder(stream, index, array.z);
}

}  // namespace

void MortonSorter::sort(const Stream& stream, Particles& particles, VectorArray* carried) {
  const std::size_t n = particles.size();
  require_rank_holds(n);
  keys_.resize(n);
  DeviceBuffer<std::uint32_t> index("sort.index", n);
  launch(stream, "morton_keys", n, MakeKeys{particles.source.data(), keys_.data(), index.data()});
  sort_by_key(stream, keys_, index);
  reorder(stream, index, particles.source);
  reorder(stream, index, particles.remainder);
  reorder(stream, index, particles.momentum);
  reorder(stream, index, particles.id);
  if (carried && carried->size() == n) reorder(stream, index, *carried);
}

}  // namespace maki
