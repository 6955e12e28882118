// The light cones that a configuration asks for.
#pragma once

#include <cstdint>

#include "src/lightcone/cone_shells.hpp"
#include "src/run/setup.hpp"

namespace maki {

// Of a run's configuration, resolved. No observers where it asks for none. Throws Error where the shells reach so far
// that there would be too many images of the box.
LightConeOptions light_cone_options(const Prepared& run, const Timeline& timeline);

// Bytes on the disk of all observers' particles and maps, particles as dense as in the mean and not compressed. 0 where only
// a file of initial conditions says how large the box is.
double light_cone_bytes(Config config, std::uint64_t particles);

}  // namespace maki
