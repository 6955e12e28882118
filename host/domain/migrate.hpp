// Particles to their owners.
#pragma once

#include <cstdint>
#include <span>

#include "host/comm/communicator.hpp"
#include "host/domain/multisection.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/particles/particles.hpp"

namespace maki {

struct Migration {
  std::uint64_t sent = 0, received = 0;   // particles of this rank
  std::uint64_t messages = 0, bytes = 0;  // sent by this rank
};

// After the call each particle is on the rank whose domain its position is in. Collective.
//   1. leavers are selected on the device and sorted (stably) by destination;
//   2. all their arrays are packed, one block a destination: 42 bytes a particle and 4 more for each extra array;
//   3. one message to each rank that gets any, none where nothing moves;
//   4. those who stay keep their order, arrivals follow them by rank and in the order they had there.
// `extra` are further arrays of the particles' length (kept accelerations), the same number on all ranks. Device memory
// beside the particles: 12 bytes each while selecting; the packed leavers and one array of 16 bytes a particle while
// moving. Throws std::invalid_argument where the domains are not as many as the ranks or an extra array differs in
// length, and Error where a rank would have 2^32 particles or more.
Migration migrate(const Stream& stream, const Communicator& communicator, const Domains& domains, Particles& particles,
                  std::span<DeviceBuffer<float>* const> extra = {});

}  // namespace maki
