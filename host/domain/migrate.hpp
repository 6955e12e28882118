// Migration of particles to their owners, packed and unpacked on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/domain/multisection.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/particles/particles.hpp"

namespace maki {

// Further arrays of the particles' length that go with them.
using ExtraArrays = std::span<DeviceBuffer<float>* const>;

// The blocks of a packed set, one for each rank, in one byte array. A block begins at a multiple of 16 bytes and holds
// its particles' source records, then ids, then momenta along x, y, z, then each extra array, then remainders, without
// padding between them.
struct BlockPlaces {
  std::vector<std::uint64_t> first;  // number of particles in all blocks before; ranks + 1 entries
  std::vector<std::uint64_t> begin;  // offset in bytes; ranks + 1 entries
  std::size_t particle_bytes = 0;

  BlockPlaces(const std::vector<std::uint64_t>& counts, std::size_t bytes);
  std::uint64_t count(std::size_t rank) const { return first[rank + 1] - first[rank]; }
  std::uint64_t bytes(std::size_t rank) const { return count(rank) * particle_bytes; }
  std::uint64_t particles() const { return first.back(); }
  std::uint64_t size() const { return begin.back(); }
};

std::size_t packed_bytes(std::size_t extra_arrays);  // of a particle

// Indices of the particles that leave, by destination, and of those that stay; ascending within each.
struct Leavers {
  DeviceBuffer<std::uint32_t> index{"migrate.leavers"};
  DeviceBuffer<std::uint32_t> staying{"migrate.staying"};  // left empty where nobody leaves
  std::vector<std::uint64_t> counts;                       // to each rank

  // The particles for keep_and_append() to keep.
  const DeviceBuffer<std::uint32_t>* kept() const { return index.empty() ? nullptr : &staying; }
};
// The particles outside of the domain of rank `self`. `view` has its starts in device memory (Domains::view_of).
Leavers select_leavers(const Stream& stream, const DeviceBuffer<SourceParticle>& sources, const DomainView& view,
                       std::uint32_t self);

// The particles named by `index`, block after block.
DeviceBuffer<std::byte> pack(const Stream& stream, Particles& particles, ExtraArrays extra,
                             const DeviceBuffer<std::uint32_t>& index, const BlockPlaces& places);
// Keeps the particles named by `staying` (all, where it is null), and appends those in the blocks.
void keep_and_append(const Stream& stream, Particles& particles, ExtraArrays extra,
                     const DeviceBuffer<std::uint32_t>* staying, const DeviceBuffer<std::byte>& packed,
                     const BlockPlaces& places);

struct Migration {
  std::uint64_t sent = 0, received = 0;   // particles of this rank
  std::uint64_t messages = 0, bytes = 0;  // sent by this rank
};

// Moves each particle to the rank whose domain contains its position. Collective.
//   1. leavers are selected on the device and sorted (stably) by destination;
//   2. all their arrays are packed, one block a destination: 42 bytes a particle and 4 more for each extra array;
//   3. one message to each rank that gets any, none where nothing moves;
//   4. particles that stay keep their order; arrivals follow, by source rank and in their order there.
// `extra`: further arrays of the particles' length (kept accelerations), the same number on all ranks. Device memory
// beyond the particles: 12 bytes a particle while selecting; the packed leavers and one array of 16 bytes a particle
// while moving. Throws std::invalid_argument where the number of domains is not that of the ranks or an extra array
// differs in length, and Error where a rank would have 2^32 particles or more.
Migration migrate(const Stream& stream, const Communicator& communicator, const Domains& domains, Particles& particles,
                  std::span<DeviceBuffer<float>* const> extra = {});
// migrate() for positions and masses alone, 16 bytes a particle.
Migration migrate(const Stream& stream, const Communicator& communicator, const Domains& domains,
                  DeviceBuffer<SourceParticle>& sources);

}  // namespace maki
