// The parts of a measurement of the power spectrum, for meshes on one rank (power_spectrum.cu) and over many
// (host/measure/power_spectrum.cu).
#pragma once

#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/measure/power_spectrum.hpp"
#include "kernels/mesh/modes.cuh"

namespace maki {

// Throws Error where options make no sense.
void check_power_options(const MeasurePowerOptions& options);

// Sums over particles.
struct MassMoments {
  double mass = 0, square = 0;
};
MassMoments mass_moments(const Stream& stream, const SourceParticle* particles, std::size_t n);

// The particles in the box folded `folding` times onto itself: in `folded`, or `particles` itself where folding is 1.
const SourceParticle* fold_particles(const Stream& stream, const SourceParticle* particles, std::size_t n, int folding,
                                     DeviceBuffer<SourceParticle>& folded);

// Some of the modes of both interlaced meshes of mass. Axes as in modes.cuh, x, y, z from the slowest to the one along
// the lines; along one of them (`half`) only the modes 0 ... m/2 are stored, and stand for their conjugates too.
struct PowerModes {
  Complex* mesh;  // becomes the spectrum of both
  const Complex* shifted;
  RowBlock rows;
  int length, stride;  // of a row
  enum class Half { kY, kZ } half;
};

// Sums by bin, the same for any thread count. Sums over parts of the modes add up to those over all but for rounding.
struct PowerSums {
  std::vector<double> waves, power;
  std::vector<std::uint64_t> modes;
};
// Combines the two meshes and sums their modes by bin; waits for the device.
PowerSums sum_power(const Stream& stream, const PowerModes& modes, const MeasurePowerOptions& options);

// From the sums over all modes and all particles.
MeasuredPower spectrum_of(const PowerSums& sums, const MassMoments& moments, const MeasurePowerOptions& options);
// Throws Error where there is no mass.
void check_mass(const MassMoments& moments);

}  // namespace maki
