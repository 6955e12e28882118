// Initial conditions of a configuration, and the boxes of isolated sets.
#pragma once

#include <array>

#include "host/comm/communicator.hpp"
#include "src/config/config.hpp"
#include "src/cosmology/power.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// The linear spectrum of a configuration's cosmology. Throws Error where its table cannot be read.
PowerSpectrum linear_power(const Config& config, const UnitSystem& units);

// Initial conditions of a configuration: this rank's share of the rows (share_of, host/comm/communicator.hpp).
// Collective. Both functions throw Error. This one: initial.kind lpt or pancake, of a resolved configuration.
Snapshot make_cosmological_set(const Config& config, const UnitSystem& units, const Communicator& ranks);
// initial.kind plummer, cold_sphere, kepler_disk or two_body; the configuration need not be resolved. Velocities are
// for the run's gravitational constant.
Snapshot make_isolated_set(const Config& config, const UnitSystem& units, const Communicator& ranks);

// The box of an isolated set. The set lies in its middle half (docs/design.md, "Numbers"), so that its extent may
// double before the box does. The side is a power of two of the length unit, so that fractions of it are exact. The
// centre is the origin where the set surrounds it, else the middle of its extent. Collective; a share may be empty.
struct IsolatedBox {
  double side = 0;
  std::array<double, 3> centre{};
};
// Its side for a set that reaches so far from the centre.
double side_of(double reach);
IsolatedBox isolated_box(const Snapshot& share, const Communicator& ranks = Communicator::self());
// A place amid most particles: the medians of their coordinates. Collective.
std::array<double, 3> median_of(const Snapshot& share, const Communicator& ranks);

}  // namespace maki
