// The power spectrum and the projected density of particles on many ranks.
#pragma once

#include "host/comm/communicator.hpp"
#include "kernels/measure/power_spectrum.hpp"
#include "kernels/measure/projection.hpp"

namespace maki {

// measure_power() of all ranks' particles, of which this one has n (may be 0): the same on every rank, and the same but
// for rounding for any number of ranks. Errors are the same on all ranks. Collective.
MeasuredPower measure_power(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                            std::size_t n, const MeasurePowerOptions& options);

// project_density() of all ranks' particles, of which this one has n (may be 0): the same bits on every rank, and those
// that one rank with all of them would get. Errors are the same on all ranks. Collective.
std::vector<double> project_density(const Communicator& communicator, const Stream& stream,
                                    const SourceParticle* particles, std::size_t n, const ProjectionOptions& options);

}  // namespace maki
