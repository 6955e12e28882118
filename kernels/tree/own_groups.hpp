// Of groups over a rank's own particles and ghosts, those that matter to it.
#pragma once

#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

// Drops groups without own particles from `groups`, in order; own_before as of JoinedSources::count_own(). `own`: for
// each that stays, which of the own particles are its members, counted in the order of the joined sources (boxes are
// not set).
void keep_own_groups(const Stream& stream, const DeviceBuffer<std::uint32_t>& own_before, DeviceBuffer<Group>& groups,
                     DeviceBuffer<Group>& own);

}  // namespace maki
