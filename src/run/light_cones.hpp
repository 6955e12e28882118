// The light cones that a configuration asks for.
#pragma once

#include <cstdint>

#include "src/lightcone/cone_shells.hpp"
#include "src/run/setup.hpp"

namespace maki {

// Of a run's configuration, resolved. No observers where it asks for none. Throws Error where the shells reach so far
// that there would be too many images of the box.
LightConeOptions light_cone_options(const Prepared& run, const Timeline& timeline);

}  // namespace maki
