// Finds what would spoil a run in a particle set that came from outside.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

struct ReadReport;

// Checks the arrays of `snapshot`, which came from `source` (named in messages), in this order: at least one particle,
// finite positions and velocities, finite positive masses, positions inside the box, particles at one point (after
// rounding to 2^-32 of the box; only noted). Positions outside of a periodic box are wrapped, unless they are so many
// or so far outside that the box must be wrong. An isolated set that does not lie in its box loses the box. Throws
// Error naming the first offender; adds sentences about repairs, and warnings, to `notes`.
// Collective: each rank gives its share of the whole set, and what is said and done is as for one rank with all of it.
void check_snapshot(Snapshot& snapshot, const std::string& source, std::vector<std::string>& notes,
                    const Communicator& ranks = Communicator::self());

// Throws Error where the file holds a part of a run's particles and `what`, such as "a run cannot begin with", needs all.
void require_whole(const std::string& what, const std::string& file, const ReadReport& report);

// Particles at one point: no force between them moves them apart, only their velocities do.
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
