// A rank's particles for friends of friends, and groups over ranks, with all members of a group on one rank.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/groups/friends.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/octree.hpp"

namespace maki {

// A particle as group finding needs it, also in messages between ranks.
struct ParticleRecord {
  SourceParticle source;
  std::uint64_t id;
  std::array<float, 3> momentum;  // a v, velocity units
};

// The host's copy of an octree (kernels/tree/octree.hpp), by cell.
struct HostTree {
  std::vector<std::uint32_t> first, count, first_child;
  std::vector<std::uint8_t> child_count;
  std::vector<CellBox> boxes;
};
HostTree download_tree(const Stream& stream, const Octree& tree, const DeviceBuffer<CellBox>& boxes);

// This rank's particles of a periodic box on the host, in Morton order, with their tree; maybe none.
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

// The boxes of each rank's particles; collective.
struct RankBoxes {
  struct Place {
    CellBox box;
    bool any;  // the rank has particles
  };
  std::vector<Place> places;  // by rank
  RankBoxes(const SortedParticles& own, const Communicator& ranks);
  // Whether the rank may have particles within `reach` (squared_units) of a box.
  bool near(std::size_t rank, const CellBox& place, std::uint64_t reach) const {
    return places[rank].any && gap_squared(place, places[rank].box) <= reach;
  }
};

// Groups that this rank measures, longest first; of two equal lengths the group with the lesser ID comes first.
struct GroupMembers {
  std::vector<std::uint64_t> begins = {0};  // one more than groups
  std::vector<ParticleRecord> particles;    // by group, IDs ascending
  std::size_t groups() const { return begins.size() - 1; }
  std::uint64_t length(std::size_t group) const { return begins[group + 1] - begins[group]; }
  const ParticleRecord* begin(std::size_t group) const { return particles.data() + begins[group]; }
  const ParticleRecord* end(std::size_t group) const { return particles.data() + begins[group + 1]; }
};

// Groups of `minimum` particles and more of all ranks' particles, each with all its members on one rank, chosen by a
// hash of its least ID. IDs are unique.
//   1. Each rank gets the particles of others within the linking length of its own ones, and finds groups among both.
//   2. The name of a group is its least ID: ranks exchange the names of particles that they sent and received, and take
//      the lesser ones, until none changes; as many rounds as a group crosses borders between ranks.
//   3. Members of groups that are long enough, or not wholly on one rank, go to the ranks that measure.
// Collective: the groups do not depend on the number of ranks and the division of the particles among them. Throws
// Error as require_linking_length().
GroupMembers collect_groups(const Stream& stream, const SortedParticles& own, const RankBoxes& boxes, double length,
                            std::uint64_t minimum, const Communicator& ranks);

}  // namespace maki
