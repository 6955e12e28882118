// All particles of a periodic box on the host, in Morton order, with their tree and the groups that friends form.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/groups/cell_boxes.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/octree.hpp"

namespace maki {

// What the host reads of an octree (kernels/tree/octree.hpp), by cell.
struct HostTree {
  std::vector<std::uint32_t> first, count, first_child;
  std::vector<std::uint8_t> child_count;
  std::vector<CellBox> boxes;
};
HostTree download_tree(const Stream& stream, const Octree& tree, const DeviceBuffer<CellBox>& boxes);

// Arrays of one length, in one order.
struct SortedParticles {
  std::vector<SourceParticle> source;
  std::vector<std::array<float, 3>> momenta;  // a v, velocity units
  std::vector<std::uint64_t> ids;
  std::vector<std::uint32_t> labels;  // of the group: the least index of its particles (find_friends)
  HostTree tree;
  std::size_t size() const { return source.size(); }
};

// Sorts the particles on the device, finds friends within `length` sides, and takes all of it to the host. Without
// particles the result is empty. Throws Error where the length is not a positive one below half a side, or where there
// are 2^32 particles or more.
SortedParticles link_particles(const Stream& stream, Particles& particles, double length);

// Groups of `minimum` particles and more, longest first; of two of one length the one with the least ID comes first.
struct GroupMembers {
  std::vector<std::uint64_t> begins = {0};  // one more than groups
  std::vector<std::uint32_t> particles;     // indices into SortedParticles, by group, IDs ascending
  std::size_t groups() const { return begins.size() - 1; }
  std::uint64_t length(std::size_t group) const { return begins[group + 1] - begins[group]; }
  const std::uint32_t* begin(std::size_t group) const { return particles.data() + begins[group]; }
  const std::uint32_t* end(std::size_t group) const { return particles.data() + begins[group + 1]; }
};
GroupMembers list_members(const SortedParticles& particles, std::uint64_t minimum);

}  // namespace maki
