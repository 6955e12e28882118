// Friends of friends (Davis, Efstathiou, Frenk & White 1985, ApJ 292, 371): particles not farther from each other than
// the linking length are friends, and groups are what friendship connects.
//
// The groups are found over a tree that exists, by union-find. Cells of which all particles are friends are one thing
// at once, whatever they hold (the dense boxes of FDBSCAN: Prokopenko, Lebrun-Grandie & Arndt 2023, ICPP); what is left
// are leaves. Each of these units meets those behind it in Morton order that are within reach. Whether two particles are
// friends is decided by integers, so the groups are the same on every machine, for any number of threads.
#pragma once

#include <cstdint>

#include "kernels/groups/cell_boxes.hpp"

namespace maki {

// `tree`: of build_octree() over the keys of `particles`, which are in Morton order; `boxes`: their make_cell_boxes().
// `length`: the linking length in sides, rounded down to whole units of the squared coordinate; nearest images count.
// labels[i], resized: the least index of a particle in the group of particle i; of one without friends its own.
// Throws Error where the length is not a positive one below half a side. Four launches and a selection, which
// tells the host a number.
void find_friends(const Stream& stream, const SourceParticle* particles, const Octree& tree,
                  const DeviceBuffer<CellBox>& boxes, double length, DeviceBuffer<std::uint32_t>& labels);

}  // namespace maki
