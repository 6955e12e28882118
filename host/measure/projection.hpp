// Pictures of particles on many ranks.
#pragma once

#include "host/comm/communicator.hpp"
#include "kernels/measure/projection.hpp"

namespace maki {

// project_density() of all ranks' particles, of which this one has n (may be 0): the same bits on every rank, and those
// that one rank with all of them would get. Errors are the same on all ranks. Collective.
std::vector<double> project_density(const Communicator& communicator, const Stream& stream,
                                    const SourceParticle* particles, std::size_t n, const ProjectionOptions& options);

}  // namespace maki
