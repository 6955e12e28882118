// Groups of friends over ranks: who is in which, and the members of each on one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/groups/sorted_particles.hpp"

namespace maki {

// Throws Error where a linking length (sides) is not a positive one below half a side.
void require_linking_length(double length);

// The least index of a particle of its group, for each particle of a set in any order (find_friends).
// Throws Error as above.
std::vector<std::uint32_t> friend_labels(const Stream& stream, const std::vector<SourceParticle>& set, double length);

// Where the particles of each rank are; collective.
struct RankBoxes {
  struct Place {
    CellBox box;
    bool any;  // particles
  };
  std::vector<Place> places;  // by rank
  RankBoxes(const SortedParticles& own, const Communicator& ranks);
  // Whether the rank has particles within `reach` (squared_units) of a box, maybe.
  bool near(std::size_t rank, const CellBox& place, std::uint64_t reach) const {
    return places[rank].any && gap_squared(place, places[rank].box) <= reach;
  }
};

// Groups that this rank measures, longest first; of two of one length the one with the least ID comes first.
struct GroupMembers {
  std::vector<std::uint64_t> begins = {0};  // one more than groups
  std::vector<ParticleRecord> particles;    // by group, IDs ascending
  std::size_t groups() const { return begins.size() - 1; }
  std::uint64_t length(std::size_t group) const { return begins[group + 1] - begins[group]; }
  const ParticleRecord* begin(std::size_t group) const { return particles.data() + begins[group]; }
  const ParticleRecord* end(std::size_t group) const { return particles.data() + begins[group + 1]; }
};

// Groups of `minimum` particles and more of all ranks' particles, each with all its members on one rank, which a hash of
// its least ID chooses. IDs are unique.
//   1. Each rank gets the particles of others within the linking length of its own ones, and finds groups among both.
//   2. The name of a group is its least ID: each rank tells the names of what it gave and got, and takes the lesser ones
//      over, until none changes; as often as a group crosses borders between ranks.
//   3. Members go to the ranks that measure: of groups that are long enough or not wholly on one rank.
// Collective: any number of ranks and division of the particles among them gives the same groups. Throws Error as above.
GroupMembers collect_groups(const Stream& stream, const SortedParticles& own, const RankBoxes& boxes, double length,
                            std::uint64_t minimum, const Communicator& ranks);

}  // namespace maki
