// This rank's particles of a periodic box on the host, in Morton order, with their tree.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/groups/cell_boxes.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/octree.hpp"

namespace maki {

// What groups need of a particle, as ranks send it to each other.
struct ParticleRecord {
  SourceParticle source;
  std::uint64_t id;
  std::array<float, 3> momentum;  // a v, velocity units
};

// What the host reads of an octree (kernels/tree/octree.hpp), by cell.
struct HostTree {
  std::vector<std::uint32_t> first, count, first_child;
  std::vector<std::uint8_t> child_count;
  std::vector<CellBox> boxes;
};
HostTree download_tree(const Stream& stream, const Octree& tree, const DeviceBuffer<CellBox>& boxes);

// Arrays of one length, in one order; maybe empty, then so is the tree.
struct SortedParticles {
  std::vector<SourceParticle> source;
  std::vector<std::array<float, 3>> momenta;  // a v, velocity units
  std::vector<std::uint64_t> ids;
  HostTree tree;
  std::size_t size() const { return source.size(); }
  ParticleRecord record(std::size_t i) const { return {source[i], ids[i], momenta[i]}; }
};

// Sorts the particles on the device and takes them to the host. Throws Error where there are 2^32 or more.
SortedParticles sort_particles(const Stream& stream, Particles& particles);

// Indices of the particles at a squared distance (units of the last bit) of `reach` or less from a box, which may be a
// point; nearest images count.
std::vector<std::uint32_t> particles_near(const SortedParticles& particles, const CellBox& place, std::uint64_t reach);

// The square of a distance in sides, 0 to 1/2, in units of the last bit, rounded down: as find_friends() has it.
inline std::uint64_t squared_units(double sides) {
  const double units = sides * kSideToUnits;
  return static_cast<std::uint64_t>(units * units);
}

}  // namespace maki
