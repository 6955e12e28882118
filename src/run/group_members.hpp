// Which particles are members of groups, by their IDs.
#pragma once

#include <cstdint>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/particle_source.hpp"

namespace maki {

// Bytes that members_among() takes for a particle of the rank.
inline constexpr double kMembersBytes = sizeof(std::uint64_t) + sizeof(std::size_t) + 0.125;

// For each of this rank's particles whether its ID is one of `members`, which rank 0 has. Collective.
std::vector<bool> members_among(const ParticleSource& particles, const std::vector<std::uint64_t>& members,
                                const Communicator& ranks);

}  // namespace maki
