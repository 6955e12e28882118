// Of a tree over a rank's own particles and ghosts: which groups matter to it, and what it can do before ghosts come.
#pragma once

#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/tree/octree.hpp"

namespace maki {

// Drops groups without own particles from `groups`, in order; own_before as of JoinedSources::count_own(). `own`: for
// each that stays, which of the own particles are its members, counted in the order of the joined sources (boxes are
// not set).
void keep_own_groups(const Stream& stream, const DeviceBuffer<std::uint32_t>& own_before, DeviceBuffer<Group>& groups,
                     DeviceBuffer<Group>& own);

// Of each cell, 1 where it holds ghosts, else 0.
void mark_ghost_cells(const Stream& stream, const DeviceBuffer<std::uint32_t>& own_before, const Octree& tree,
                      DeviceBuffer<std::uint8_t>& has_ghosts);

// Groups whose lists, over all of them, name no cell that holds ghosts, and which have none themselves, are inner ones;
// all others outer ones. Indices, ascending.
void split_groups(const Stream& stream, const ListView& lists, const DeviceBuffer<Group>& own,
                  const DeviceBuffer<std::uint8_t>& has_ghosts, DeviceBuffer<std::uint32_t>& inner,
                  DeviceBuffer<std::uint32_t>& outer);

}  // namespace maki
