// The particle of each group that lies deepest in the group's own potential: the group's centre.
#pragma once

#include <cstdint>
#include <vector>

#include "src/groups/links.hpp"

namespace maki {

// Of groups up to this length all potentials are exact sums over the members. Of longer ones all are taken from a tree
// (monopoles, opening angle 1/2), and then those of the kExactCandidates deepest exactly: they decide.
inline constexpr std::uint64_t kDirectLength = 512;
inline constexpr std::size_t kExactCandidates = 64;

// By group its deepest particle, -sum m_j / sqrt(r_ij^2 + softening^2) over the other members j; of equal ones that with
// the least ID. Softening in sides. Sums are in double in the order of IDs, so that the result does not depend on
// threads. The particles stand in `members`.
std::vector<const ParticleRecord*> deepest_particles(const Stream& stream, const GroupMembers& members,
                                                     double softening);

}  // namespace maki
