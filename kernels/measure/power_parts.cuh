// The parts of a power spectrum measurement, for meshes on one rank (power_parts.cu) and over many
// (host/measure/spectra.cu).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/measure/power_spectrum.hpp"
#include "kernels/mesh/modes.cuh"

namespace maki {

// Sums over particles.
struct MassMoments {
  double mass = 0, square = 0, cube = 0;
};
MassMoments mass_moments(const Stream& stream, const SourceParticle* particles, std::size_t n);

// The box's particles folded `folding` times onto itself: in `folded`, or `particles` itself where folding is 1.
const SourceParticle* fold_particles(const Stream& stream, const SourceParticle* particles, std::size_t n, int folding,
                                     DeviceBuffer<SourceParticle>& folded);

// Some of the modes of a mesh of mass. Axes as in modes.cuh: x, y, z from the slowest to the one along the lines. Along
// y only the modes 0 ... m/2 are stored, and stand for their conjugates too.
struct PowerModes {
  Complex* mesh;
  RowBlock rows;
  int length, stride;  // of a row
};

// Combines both interlaced meshes into one spectrum, in modes.mesh; `shifted` has the same rows. Waits for the device.
void combine_meshes(const Stream& stream, const PowerModes& modes, const Complex* shifted, int m);

// The bin of each |n|^2 < (m/2)^2; writes the number of bins to `bins`.
std::vector<std::uint32_t> bin_table(const MeasurePowerOptions& options, int& bins);
// The factor along one axis that deconvolves the cloud from a mode's amplitude, by n = 0 ... m - 1.
std::vector<float> deconvolution_table(int m);

// Sums by bin, the same for any thread count. Sums over parts of the modes add up to those over all, up to rounding.
struct PowerSums {
  std::vector<double> waves, power;
  std::vector<std::uint64_t> modes;
};
// Sums of Re(a_k conj(b_k)) by bin, a of `modes` and b of `other` with the same rows; |a_k|^2 where both are the same.
// Waits for the device.
PowerSums sum_power(const Stream& stream, const PowerModes& modes, const Complex* other,
                    const MeasurePowerOptions& options);

// The spectrum, from the sums over all modes and all particles.
MeasuredPower spectrum_of(const PowerSums& sums, const MassMoments& moments, const MeasurePowerOptions& options);

// Sums of the modes of a bin of |k|.
struct BinSum {
  double waves, power;  // of |n|, and of deconvolved powers
  std::uint64_t modes;
};

// The contribution of one mode to its bin.
struct ModeShare {
  double waves, power, factor;  // factor: the deconvolution's, for one amplitude; add_to() applies it for the other
  std::uint32_t weight;

  MAKI_HD void add_to(BinSum& bin) const {
    bin.waves += waves;
    bin.power += power * factor;
    bin.modes += weight;
  }
};

// The sums by bin of each plane of modes.
struct BinPlanes {
  PowerModes part;
  const Complex* other;         // of the second set; part.mesh where there is one set
  BinSum* sums;                 // planes x bins
  const std::uint32_t* bin_of;  // by |n|^2, for |n| < m / 2
  const float* deconvolution;   // 1 / U along one axis, by n = 0 ... m - 1
  int m, bins;

  static constexpr std::uint32_t kNoBin = ~0u;

  MAKI_HD int wave(int i) const { return i <= m / 2 ? i : i - m; }
  MAKI_HD int squared(int x, int y) const { return wave(x) * wave(x) + wave(y) * wave(y); }
  // Bin of mode z in a row with n2_xy = squared(x, y); kNoBin: the mode is not counted.
  MAKI_HD std::uint32_t bin(int n2_xy, int z) const {
    const int n2 = n2_xy + wave(z) * wave(z), limit = m / 2 * (m / 2);
    return n2 == 0 || n2 >= limit ? kNoBin : bin_of[n2];
  }
  MAKI_HD ModeShare share(int x, int y, int z, int n2_xy, std::size_t row) const {
    const Complex a = part.mesh[row + static_cast<std::size_t>(z)], b = other[row + static_cast<std::size_t>(z)];
    const int n2 = n2_xy + wave(z) * wave(z);
    const double factor = static_cast<double>(deconvolution[x]) * deconvolution[y] * deconvolution[z];
    const double power = (static_cast<double>(a.re) * b.re + static_cast<double>(a.im) * b.im);
    const int weight = y > 0 ? 2 : 1;  // -k is in the half that is not stored
    return {weight * std::sqrt(static_cast<double>(n2)), weight * power * factor, factor,
            static_cast<std::uint32_t>(weight)};
  }
  // Begin of a row.
  MAKI_HD std::size_t row(std::size_t plane, int j) const {
    return (plane * static_cast<std::size_t>(part.rows.count_y) + static_cast<std::size_t>(j)) *
           static_cast<std::size_t>(part.stride);
  }
};

// Fills `sums`: each plane's modes are added to its bins row by row, in storage order.
void bin_planes(const Stream& stream, const BinPlanes& planes);

}  // namespace maki
