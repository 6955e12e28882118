// Initial conditions as a configuration asks for them.
#pragma once

#include "host/comm/communicator.hpp"
#include "src/config/config.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// All functions are collective and give this rank's share of the rows (host/comm/share.hpp).

// initial.kind lpt or pancake, of a resolved configuration. Throws Error.
Snapshot make_cosmological_set(const Config& config, const UnitSystem& units, const Communicator& ranks);

// initial.kind plummer, cold_sphere, kepler_disk or two_body; the configuration need not be resolved. Velocities suit
// the run's constant of gravity. Throws Error.
Snapshot make_isolated_set(const Config& config, const UnitSystem& units, const Communicator& ranks);

}  // namespace maki
