// Finds what would spoil a run in a particle set that came from outside.
#pragma once

#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// Checks the arrays of `snapshot`, which came from `source` (named in messages), in this order: at least one particle,
// finite positions and velocities, finite positive masses, positions inside the box, particles at one point (after
// rounding to 2^-32 of the box; only noted). Positions outside of a periodic box are wrapped, unless they are so many
// or so far outside that the box must be wrong. An isolated set that does not lie in its box loses the box. Throws
// Error naming the first offender; adds sentences about repairs, and warnings, to `notes`.
// Collective: each rank gives its share of the whole set, and what is said and done is as for one rank with all of it.
void check_snapshot(Snapshot& snapshot, const std::string& source, std::vector<std::string>& notes,
                    const Communicator& ranks = Communicator::self());

}  // namespace maki
