// The potential of each group at its members, and the member that lies deepest: the group's centre.
#pragma once

#include <cstdint>
#include <vector>

#include "src/groups/links.hpp"

namespace maki {

// Of groups up to this length all potentials are exact sums over the members. Of longer ones all are taken from a tree
// (monopoles, opening angle 1/2), and then those of the kExactCandidates deepest exactly: they decide.
inline constexpr std::uint64_t kDirectLength = 512;
inline constexpr std::size_t kExactCandidates = 64;

struct GroupPotentials {
  // By group; of equal ones that with the least ID. They stand in `members`.
  std::vector<const ParticleRecord*> deepest;
  // In the order of members.particles; mass / side: -sum m_j / sqrt(r_ij^2 + softening^2) over the others.
  std::vector<double> of_member;
};
// Softening in sides. Sums are in double in an order that the group alone decides, so that the result does not depend on
// threads.
GroupPotentials group_potentials(const Stream& stream, const GroupMembers& members, double softening);

}  // namespace maki
