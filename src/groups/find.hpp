// From particles on the device to the catalogue of their groups.
#pragma once

#include "host/comm/communicator.hpp"
#include "src/groups/catalogue.hpp"
#include "src/simulation/frame.hpp"

namespace maki {

struct GroupOptions {
  double linking_length = 0.2;  // in mean distances between particles, side / N^(1/3)
  std::uint64_t minimum = 32;   // particles of a group, at least
};

// Potentials that decide about centres are softened by this fraction of the mean distance between particles.
inline constexpr double kCentreSoftening = 1.0 / 40;

// Friends of friends of all ranks' particles in a periodic box. Moves particles to the ranks of compact domains, and sorts
// them. Collective; the catalogue is on rank 0 (all others get an empty one), and the same to the bit for any number of
// threads and ranks. Throws Error where the set has no periodic box, no h, no matter density (header.omega0) or twice
// that density or more, or where the linking length is half a side or more.
GroupCatalogue find_groups(const Stream& stream, const Communicator& ranks, Particles& particles, const Frame& frame,
                           const SnapshotHeader& header, const GroupOptions& options);

}  // namespace maki
