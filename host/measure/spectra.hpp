// The power spectrum, the cross spectrum, the bispectrum and the projected density of particles on many ranks.
#pragma once

#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/measure/power_spectrum.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// The power spectrum of all ranks' particles, of which this one has n (may be 0): the same on every rank and for any
// number of threads, and up to rounding for any number of ranks. For a box of side L, multiply k by 1 / L and powers by
// L^3. Throws Error, the same on all ranks, where options make no sense or there is no mass. Collective.
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
// Spectra and cross spectrum of two sets, as by measure_power_up_to() of one. Collective.
CrossPower measure_cross_up_to(int highest, const Communicator& communicator, const Stream& stream,
                               const ParticleSets& sets, const MeasurePowerOptions& options);

// Surface density in mass / side^2 of all ranks' particles, of which this one has n (may be 0): width x height, first
// axis fastest; the mean over a whole slab is mass / side^2. Counted in integers: the same bits for any order, thread
// count, number of ranks and backend. Throws Error, the same on all ranks, where options make no sense. Collective.
std::vector<double> project_density(const Communicator& communicator, const Stream& stream,
                                    const SourceParticle* particles, std::size_t n, const ProjectionOptions& options);

// The bispectrum of matter by FFTs: the modes of each shell of wave numbers are transformed back separately, and the
// fields multiplied cell by cell, which sums over all closed triangles with one side in each shell (Scoccimarro 2000,
// ApJ 544, 597; Scoccimarro 2015, PRD 92, 083532). Mesh as for the power spectrum: PCS, interlaced, the cloud
// deconvolved.
struct BispectrumOptions {
  int cells = 256;     // of the mesh along one side; even, at least 8
  double width = 2;    // of shells, in fundamental waves 2 pi / side: shell b has |n| / width from b - 1/2 to b + 1/2
  int long_shell = 1;  // b of the small wave number (the long wave) in squeezed triangles
};

// Means over all triples of modes that add up to zero, in any order: of one shell, or of two.
struct TriangleMean {
  double bispectrum = 0;  // mean of delta_1 delta_2 delta_3, side^6; shot noise is not taken off
  double shot_noise = 0;  // the contribution of randomly placed particles with these spectra, side^6
  double triangles = 0;
};

struct BispectrumBin {
  double k = 0;               // mean over the shell's modes, 1 / side
  double power = 0;           // of the shell, side^3; shot noise included
  double begin = 0, end = 0;  // of the shell, 1 / side
  TriangleMean equilateral;   // all sides in this shell
  TriangleMean squeezed;      // two sides in this shell, one in long_bin's
};

struct MeasuredBispectrum {
  // Shells 1, 2, ... with |n| below a third of the mesh, where no triangle closes only across the mesh's edge.
  std::vector<BispectrumBin> bins;
  std::size_t long_bin = 0;  // index of BispectrumOptions::long_shell
  double shot_noise = 0;     // of the power, side^3
};

// The bispectrum of all ranks' particles, of which this one has n (may be 0): the same on every rank, and up to
// rounding for any number of ranks. Takes three meshes of floats beside the counts. Collective. Throws Error, the same
// on all ranks, where options make no sense or there is no mass.
MeasuredBispectrum measure_bispectrum(const Communicator& communicator, const Stream& stream, const MeshParticles& mine,
                                      const BispectrumOptions& options);

}  // namespace maki
