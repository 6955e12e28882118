// The unit of mass of particles that lie on many ranks.
#pragma once

#include "host/comm/communicator.hpp"
#include "kernels/mesh/mass_unit.hpp"

namespace maki {

// mass_range() of all ranks' particles. Collective.
MassRange mass_range(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                     std::size_t n);

// What the unit of all ranks' particles depends on, the same on every rank. Collective.
MassTotals mass_totals(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                       std::size_t n);

// choose_mass_unit() of all ranks' particles: the same on every rank, and what one rank with all of them would choose.
// Errors are the same on all ranks, and nothing is rounded. Collective.
MassUnit choose_mass_unit(const Communicator& communicator, const Stream& stream, Assignment assignment, int cells,
                          const SourceParticle* particles, std::size_t n);

}  // namespace maki
