// Particles at one point: no force between them moves them apart, only their velocities do.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "host/comm/communicator.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

struct Twins {
  std::uint64_t count;               // of particles whose point is also another's
  std::array<std::uint64_t, 2> ids;  // of the first two at the first such point
  std::array<double, 3> position;    // of the first
};

// Particles of the whole set at one point after rounding to 2^-32 of the box (of twice the extent of a set without a
// box), or nothing where there are none; the same for any number of ranks. A hash distributes the points of all shares
// over ranks, which sort them, 12 bytes each, so that no rank needs memory for more than about its share, twice.
// Positions are finite and in the box. Collective.
std::optional<Twins> find_twins(const Snapshot& share, const Communicator& ranks);

}  // namespace maki
