// Groups of a tree over a rank's own particles and ghosts: those with own particles, and among them those that can be
// evaluated before new positions of the ghosts arrive.
#pragma once

#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/tree/octree.hpp"

namespace maki {

// Drops groups without own particles from `groups`, in order; own_before as of JoinedSources::count_own(). `own`: by
// group that stays, its members as a range of the own particles in the order of the joined sources (boxes are not set).
void keep_own_groups(const Stream& stream, const DeviceBuffer<std::uint32_t>& own_before, DeviceBuffer<Group>& groups,
                     DeviceBuffer<Group>& own);

// By cell: 1 where it holds ghosts, else 0.
void mark_ghost_cells(const Stream& stream, const DeviceBuffer<std::uint32_t>& own_before, const Octree& tree,
                      DeviceBuffer<std::uint8_t>& has_ghosts);

// Splits groups into inner ones, which hold no ghosts and whose lists name no cell that holds ghosts, and outer ones,
// all others. `lists`: of all groups. `inner` and `outer`: indices, ascending.
void split_groups(const Stream& stream, const ListView& lists, const DeviceBuffer<Group>& own,
                  const DeviceBuffer<std::uint8_t>& has_ghosts, DeviceBuffer<std::uint32_t>& inner,
                  DeviceBuffer<std::uint32_t>& outer);

}  // namespace maki
