// The matter power spectrum on a mesh: PCS assignment with interlacing, the cloud deconvolved
// (Sefusatti, Crocce, Scoccimarro & Couchman 2016).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device/stream.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

enum class PowerBinning { kLinear, kLogarithmic };

struct MeasurePowerOptions {
  int cells = 256;  // of the mesh along one side; even, at least 8
  PowerBinning binning = PowerBinning::kLinear;
  double bin_width = 1;      // linear: in fundamental waves 2 pi / side; bins are centred on multiples of it
  int bins_per_decade = 20;  // logarithmic; bins begin at the fundamental wave
  // High wave numbers from a small mesh: the box is folded this many times onto itself along each axis
  // (Jenkins et al. 1998), so that mesh mode n stands for the wave number folding * n. 1: not folded.
  int folding = 1;
};

struct PowerBin {
  double k = 0;             // mean over the bin's modes, 1 / side
  double power = 0;         // mean of |delta_k|^2, side^3; shot noise is not taken off
  std::uint64_t modes = 0;  // k and -k count as two
};

struct MeasuredPower {
  std::vector<PowerBin> bins;  // with at least one mode, in order of k, below the mesh's Nyquist wave number
  double shot_noise = 0;       // sum m^2 / (sum m)^2, side^3: 1 / N for equal masses
  double nyquist = 0;          // 1 / side
};

// Multiply k by 1 / L and powers by L^3 for lengths of a box of side L. The same for any thread count.
// Throws Error where options make no sense or there is no mass.
MeasuredPower measure_power(const Stream& stream, const SourceParticle* particles, std::size_t n,
                            const MeasurePowerOptions& options);

}  // namespace maki
