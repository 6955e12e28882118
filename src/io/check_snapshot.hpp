// Checks of particle sets from files: finite numbers, IDs, the extent of a set, particles at one point.
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
// finite positions and velocities, finite positive masses, positions inside the box; only noted are particles at one
// point (after rounding to 2^-32 of the box) and ids that several particles have. Positions outside of a periodic box
// are wrapped, unless they are so many or so far outside that the box must be wrong. An isolated set that does not fit
// into its box loses the box. Throws Error that names the first bad particle; adds sentences about repairs, and
// warnings, to `notes`. Collective: each rank passes its share of the whole set; results and messages are those of one
// rank with the whole set.
void check_snapshot(Snapshot& snapshot, const std::string& source, std::vector<std::string>& notes,
                    const Communicator& ranks = Communicator::self());

// Throws Error where the file holds only a part of a run's particles. `what`, such as "a run cannot begin with", begins
// the message.
void require_whole(const std::string& what, const std::string& file, const ReadReport& report);

// The least and the largest coordinates of a set; infinities where it is empty. Collective.
struct Extent {
  std::array<double, 3> low, high;
};
Extent extent_of(const Snapshot& share, const Communicator& ranks);

// Particles at one point: only their velocities, not their forces, can separate them.
struct Twins {
  std::uint64_t count;               // of particles that share their point with another
  std::array<std::uint64_t, 2> ids;  // of the first two at the first such point
  std::array<double, 3> position;    // of the first
};

// Particles of the whole set at one point after rounding to 2^-32 of the box (of twice the extent of a set without a
// box), if any; the same for any number of ranks. A hash distributes the points of all shares over ranks, which sort
// them, 12 bytes each, so that no rank needs memory for more than about its share, twice. Positions are finite and in
// the box. Collective.
std::optional<Twins> find_twins(const Snapshot& share, const Communicator& ranks);

}  // namespace maki
