// The potential of each group at its members, and the member deepest in it: the group's centre.
#pragma once

#include <cstdint>
#include <vector>

#include "src/groups/links.hpp"

namespace maki {

// In groups up to this length all potentials are exact sums over the members. In longer groups a tree (monopoles,
// opening angle 1/2) gives all potentials, and exact sums over the kExactCandidates deepest members select the centre.
inline constexpr std::uint64_t kDirectLength = 512;
inline constexpr std::size_t kExactCandidates = 64;

struct GroupPotentials {
  // By group, pointers into `members`; of equal potentials the member with the least ID.
  std::vector<const ParticleRecord*> deepest;
  // In the order of members.particles; mass / side: -sum m_j / sqrt(r_ij^2 + softening^2) over the others.
  std::vector<double> of_member;
};
// Softening in sides. Sums are in double, in an order that depends only on the group, so that the result does not
// depend on threads.
GroupPotentials group_potentials(const Stream& stream, const GroupMembers& members, double softening);

}  // namespace maki
