// The power spectrum of particles on many ranks.
#pragma once

#include "host/comm/communicator.hpp"
#include "kernels/measure/power_spectrum.hpp"

namespace maki {

// measure_power() of all ranks' particles, of which this one has n (may be 0): the same on every rank, and the same but
// for rounding for any number of ranks. Errors are the same on all ranks. Collective.
MeasuredPower measure_power(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                            std::size_t n, const MeasurePowerOptions& options);

}  // namespace maki
