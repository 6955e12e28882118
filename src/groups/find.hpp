// From particles on the device to the catalogue of their groups.
#pragma once

#include "src/groups/catalogue.hpp"
#include "src/simulation/frame.hpp"

namespace maki {

struct GroupOptions {
  double linking_length = 0.2;  // in mean distances between particles, side / N^(1/3)
  std::uint64_t minimum = 32;   // particles of a group, at least
};

// Potentials that decide about centres are softened by this fraction of the mean distance between particles.
inline constexpr double kCentreSoftening = 1.0 / 40;

// Friends of friends of all particles of a periodic box, on one rank; sorts the particles. Throws Error where the set
// has no periodic box, no matter density (header.omega0) or h, or as link_particles() does.
GroupCatalogue find_groups(const Stream& stream, Particles& particles, const Frame& frame, const SnapshotHeader& header,
                           const GroupOptions& options);

}  // namespace maki
