// Morton keys: 63 bits, 21 an axis, from the top bits of the fixed-point coordinates; x is the most significant.
#pragma once

#include <cstdint>

#include "kernels/particles/particles.hpp"

namespace maki {

inline constexpr int kMortonLevels = 21;  // an octree cell of level l shares the first 3 l bits of the key

// The 21 low bits of v, two zeros between each and the next.
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

// Sorts particles, and any arrays carried along, into Morton order. Beside the particles it needs, in bytes a particle,
// 24 while sorting (keys and indices, twice), 28 while reordering (keys, indices, one array of 16) and 8 after that,
// until the keys are released.
class MortonSorter {
 public:
  // After the call keys() holds the sorted keys. `carried` arrays have the particles' length.
  void sort(const Stream& stream, Particles& particles, VectorArray* carried);
  const DeviceBuffer<std::uint64_t>& keys() const { return keys_; }
  // Gives the keys' memory back: nobody needs them once the tree is built.
  void release_keys() { keys_.release(); }

 private:
  DeviceBuffer<std::uint64_t> keys_{"sort.keys"};
};

}  // namespace maki
