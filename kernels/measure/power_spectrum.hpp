// The matter power spectrum on a mesh: PCS assignment with interlacing, the cloud deconvolved
// (Sefusatti, Crocce, Scoccimarro & Couchman 2016, MNRAS 460, 3624).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device/stream.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

struct MeasurePowerOptions {
  int cells = 256;       // of the mesh along one side; even, at least 8
  double bin_width = 1;  // in fundamental waves 2 pi / side; bins are centred on multiples of it
  // High wave numbers from a small mesh: the box is folded this many times onto itself along each axis
  // (Jenkins et al. 1998), so that mesh mode n stands for the wave number folding * n. 1: not folded.
  int folding = 1;
};

struct PowerBin {
  double k = 0;             // mean over the bin's modes, 1 / side
  double power = 0;         // mean of |delta_k|^2, side^3; shot noise is not taken off
  std::uint64_t modes = 0;  // k and -k count as two
  int folding = 1;          // MeasurePowerOptions::folding
};

struct MeasuredPower {
  std::vector<PowerBin> bins;  // with at least one mode, in order of k, below the mesh's Nyquist wave number
  double shot_noise = 0;       // sum m^2 / (sum m)^2, side^3: 1 / N for equal masses
  double nyquist = 0;          // 1 / side, times the folding
};

// Wave numbers beyond the mesh: the spectra of the foldings 1, 2, 4, ... joined. A folding f has bins f times as wide,
// each from a sample of the modes (1 in f^3); it covers the wave numbers beyond the reach of the foldings before it.

// 1, 2, 4, ..., `highest`. Throws Error where `highest` is no power of two from 1 to 4096.
std::vector<int> foldings_up_to(int highest);
// `options` with another folding, and with bins as many fundamental waves of the folded box wide.
MeasurePowerOptions folded(MeasurePowerOptions options, int folding);
// The wave numbers k (1 / side) whose bins come from `folding`: from the end of the previous folding's whole bins to
// the end of its own, which is half a wave of the folded box below the Nyquist wave number. The highest folding has no
// end.
struct WaveRange {
  double begin, end;
  bool has(double k) const { return k >= begin && k < end; }
};
WaveRange waves_of_folding(int folding, int highest, int cells);

// Two sets of particles in one box, mode by mode.
struct CrossBin {
  double k = 0;  // mean over the bin's modes, 1 / side
  double first = 0, second = 0,
         cross = 0;  // means of |a_k|^2, |b_k|^2 and Re(a_k conj(b_k)), side^3; shot noise included
  std::uint64_t modes = 0;
  int folding = 1;
  // cross / sqrt(first second), 0 where one of them is 0.
  double correlation() const;
};
struct CrossPower {
  std::vector<CrossBin> bins;  // as in MeasuredPower
  double shot_noise_first = 0,
         shot_noise_second = 0;  // side^3; the cross power has none where no particle is in both
};

}  // namespace maki
