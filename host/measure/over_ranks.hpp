// The power spectrum and the projected density of particles on many ranks.
#pragma once

#include "host/comm/communicator.hpp"
#include "kernels/measure/power_spectrum.hpp"
#include "kernels/measure/projection.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// measure_power() of all ranks' particles, of which this one has n (may be 0): the same on every rank, and up to
// rounding for any number of ranks. Errors are the same on all ranks. Collective.
MeasuredPower measure_power(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                            std::size_t n, const MeasurePowerOptions& options);

// The spectra of the foldings 1, 2, 4, ..., `highest` of options.cells and bin_width, joined (power_spectrum.hpp): up
// to `highest` times the mesh's Nyquist wave number. Each folding above 1 takes 16 bytes a particle. Throws Error as
// foldings_up_to() does. Collective.
MeasuredPower measure_power_up_to(int highest, const Communicator& communicator, const Stream& stream,
                                  const MeshParticles& mine, const MeasurePowerOptions& options);

// This rank's particles in each of two sets in one box.
struct ParticleSets {
  MeshParticles first, second;
};
// Spectra and cross spectrum of two sets, as above. Collective.
CrossPower measure_cross_up_to(int highest, const Communicator& communicator, const Stream& stream,
                               const ParticleSets& sets, const MeasurePowerOptions& options);

// project_density() of all ranks' particles, of which this one has n (may be 0): the same bits on every rank as on one
// rank with all of them. Errors are the same on all ranks. Collective.
std::vector<double> project_density(const Communicator& communicator, const Stream& stream,
                                    const SourceParticle* particles, std::size_t n, const ProjectionOptions& options);

}  // namespace maki
