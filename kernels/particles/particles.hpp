// The particles of a run on the device, from start to end, and their Morton order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

// Morton keys: 63 bits, 21 an axis, from the top bits of the fixed-point coordinates; x is the most significant.
inline constexpr int kMortonLevels = 21;  // an octree cell of level l shares the first 3 l bits of the key

// The 21 low bits of v, with two zeros between neighbours.
MAKI_HD std::uint64_t spread_bits(std::uint64_t v) {
  v &= 0x1fffff;
  v = (v | v << 32) & 0x001f00000000ffffull;
  v = (v | v << 16) & 0x001f0000ff0000ffull;
  v = (v | v << 8) & 0x100f00f00f00f00full;
  v = (v | v << 4) & 0x10c30c30c30c30c3ull;
  v = (v | v << 2) & 0x1249249249249249ull;
  return v;
}

MAKI_HD std::uint32_t gather_bits(std::uint64_t v) {
  v &= 0x1249249249249249ull;
  v = (v | v >> 2) & 0x10c30c30c30c30c3ull;
  v = (v | v >> 4) & 0x100f00f00f00f00full;
  v = (v | v >> 8) & 0x001f0000ff0000ffull;
  v = (v | v >> 16) & 0x001f00000000ffffull;
  v = (v | v >> 32) & 0x1fffff;
  return static_cast<std::uint32_t>(v);
}

MAKI_HD std::uint64_t morton_key(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return spread_bits(x >> 11) << 2 | spread_bits(y >> 11) << 1 | spread_bits(z >> 11);
}

// The part below the last bit of a coordinate, in 2^-16 of it, so that slow particles do not freeze.
struct Remainder {
  std::uint16_t x, y, z;
  bool operator==(const Remainder&) const = default;
};

// 42 bytes a particle. All arrays have the same length and order: Morton order of the last rebuild.
struct Particles {
  DeviceBuffer<SourceParticle> source{"particles.source"};  // position and mass
  DeviceBuffer<Remainder> remainder{"particles.remainder"};
  VectorArray momentum{"particles.momentum"};  // p = a^2 dx/dt, velocity units
  DeviceBuffer<std::uint64_t> id{"particles.id"};
  std::size_t size() const { return source.size(); }
  void resize(std::size_t n);
};

Particles copy_of(const Stream& stream, const Particles& from);

// Sorts particles, and any arrays carried along, into Morton order. Memory beyond the particles, bytes a particle: 24
// while sorting (keys and indices, twice), 28 while reordering (keys, indices, one array of 16), then 8 until the keys
// are released.
class MortonSorter {
 public:
  static constexpr double kBytes = 28;  // a particle, the peak of the above

  // Afterwards keys() holds the sorted keys. `carried` arrays have the particles' length.
  void sort(const Stream& stream, Particles& particles, VectorArray* carried);
  const DeviceBuffer<std::uint64_t>& keys() const { return keys_; }
  // Frees the keys, which are not needed once the tree is built.
  void release_keys() { keys_.release(); }

 private:
  DeviceBuffer<std::uint64_t> keys_{"sort.keys"};
};

// Throws Error for 2^32 particles or more.
void require_rank_holds(std::uint64_t particles);

// Host positions as fractions of the side in [0, 1), momenta, masses, ids; arrays of one length. Throws Error where
// lengths differ, or for 2^32 particles or more.
void upload_particles(const Stream& stream, Particles& particles, const std::vector<std::array<double, 3>>& fractions,
                      const std::vector<std::array<float, 3>>& momenta, const std::vector<float>& masses,
                      const std::vector<std::uint64_t>& ids);

struct HostParticles {
  std::vector<std::array<double, 3>> fractions;  // [0, 1), with the remainder
  std::vector<std::array<float, 3>> momenta;
  std::vector<float> masses;
  std::vector<std::uint64_t> ids;
};
HostParticles download_particles(const Stream& stream, const Particles& particles);

// x += p * factor, on the 48-bit coordinate; factor in sides per momentum unit. Wraps around the box.
void drift(const Stream& stream, Particles& particles, double factor);

// p += acceleration * factor, rounded to the nearest float: kicks below 3e-8 of p are lost, step after step. With
// `draw` sums are rounded up or down by chance, with the right mean (stochastic rounding, Croci et al. 2022, R. Soc.
// Open Sci. 9, 211631). The chance follows from `draw`, which is another number for each kick, and the particle's ID.
void kick(const Stream& stream, Particles& particles, const VectorArray& acceleration, double factor,
          const std::optional<std::uint64_t>& draw = {});

// Doubles the box of an isolated set about its middle: x -> (x + 1/2) / 2 in fractions of the new side.
void double_box(const Stream& stream, Particles& particles);

// Moves the box by so many units of the last bit on each axis: x -> x - shift, modulo a side.
void shift_box(const Stream& stream, Particles& particles, const std::array<std::int32_t, 3>& shift);

// Copies of the particles with |x - 1/2| > reach on some axis (units of the last bit), in the set's order.
HostParticles copies_beyond(const Stream& stream, Particles& particles, std::int64_t reach);

// Removes every particle with |x - 1/2| > reach on some axis (units of the last bit) from the set and returns them; the
// others keep their order. Accelerations of the set are stale afterwards.
HostParticles set_aside(const Stream& stream, Particles& particles, std::int64_t reach);

}  // namespace maki
