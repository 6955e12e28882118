// The error of a run's forces, measured against exact sums on a sample of its particles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/comm/communicator.hpp"
#include "src/gravity/gravity.hpp"
#include "src/io/snapshot.hpp"
#include "wan/sites/sites.hpp"

namespace maki {

// Bytes a particle during the check: on the device, beside a second tree and its lists, and on the host.
inline constexpr double kForceCheckBytes = 94, kForceCheckHostBytes = 150;
// Largest memory of the strict walk's lists, bytes; longer lists are made and used in batches.
inline constexpr std::size_t kForceCheckLists = std::size_t{256} << 20;

// Compares accelerations of `gravity`, computed at these positions, with Ewald sums (isolated sets: with direct sums)
// of the same softening, for about `wanted` particles of all ranks and sites. Also compares those of all particles with
// a strict walk of a new tree, since a few particles in haloes, which a sample may miss, have most of the mean square
// error. Hashes of ids choose the sample, whichever rank holds a particle; where few are wanted it may be empty. Over
// sites, the site with most ranks gathers all particles (gathered_set.hpp) and measures.
// Time in a periodic box: (17000 waves + 30 targets) x particles of this rank, at some 1e9 a second and core, and some
// evaluations of the tree. Collective, also over sites.
ForceError measure_force_error(const Stream& stream, const Particles& particles, const Gravity& gravity,
                               const Communicator& ranks, sites::Sites& sites, std::uint64_t wanted);

}  // namespace maki
