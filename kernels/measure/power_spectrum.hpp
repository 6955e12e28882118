// The matter power spectrum, by PCS assignment with interlacing and the cloud deconvolved (Sefusatti, Crocce,
// Scoccimarro & Couchman 2016, MNRAS 460, 3624); and projected densities for pictures. The functions that measure them
// over ranks: host/measure/spectra.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device/stream.hpp"
#include "kernels/mesh/mass_unit.hpp"
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

// Wave numbers beyond the mesh's Nyquist wave number come from the foldings 1, 2, 4, ..., whose spectra are joined. The
// bins of folding f are f times as wide and hold 1 in f^3 of their modes. Each folding covers the wave numbers beyond
// those of the foldings before it.

// 1, 2, 4, ..., `highest`. Throws Error where `highest` is no power of two from 1 to 4096.
std::vector<int> foldings_up_to(int highest);
// `options` with another folding; bin_width then counts fundamental waves of the folded box.
MeasurePowerOptions folded(MeasurePowerOptions options, int folding);
// The wave numbers k (1 / side) whose bins come from `folding`: from the end of the previous folding's whole bins to
// the end of its own, which is half a wave of the folded box below the Nyquist wave number. The highest folding has no
// end.
struct WaveRange {
  double begin, end;
  bool has(double k) const { return k >= begin && k < end; }
};
WaveRange waves_of_folding(int folding, int highest, int cells);

// The spectra of two sets of particles, a and b, in one box.
struct CrossBin {
  double k = 0;                  // mean over the bin's modes, 1 / side
  double first = 0, second = 0;  // means of |a_k|^2 and |b_k|^2, side^3; shot noise included
  double cross = 0;              // mean of Re(a_k conj(b_k)), side^3
  std::uint64_t modes = 0;
  int folding = 1;
  // cross / sqrt(first second), 0 where one of them is 0.
  double correlation() const;
};
struct CrossPower {
  std::vector<CrossBin> bins;  // as in MeasuredPower
  // side^3; the cross power has none where no particle is in both sets
  double shot_noise_first = 0, shot_noise_second = 0;
};

// Bounds on depth and extent of a projection, sides of the box: some units of coordinates, and for a box that is not
// periodic so many sides that windows stay in 64 bits.
inline constexpr double kLeastProjected = 1e-8, kMostProjected = 0x1p20;

// The mass in a slab, seen along an axis. Lengths are in sides of the box.
struct ProjectionOptions {
  int axis = 2;  // line of sight; the picture's axes are the two others in the order x, y, z
  int width = 1024, height = 1024;
  double front = 0, depth = 1;  // the slab [front, front + depth), around the edge of a periodic box where it must
  // The visible part of the box: the whole periodic box wraps around, any other window is cut at its edges.
  double left = 0, bottom = 0, extent = 1;
  bool count_particles = false;  // every particle has the mass 1 in the picture
  bool periodic = true;          // else slab and window may lie anywhere, and there is nothing outside of the box
};

// The steps of project_density() (host/measure/spectra.hpp): the unit of mass, the counts of each pixel, which add up
// exactly over ranks, and the density from the counts. Each particle is spread over 3 x 3 pixels (TSC). (The unit's
// bound is for the three weights of a mesh cell; with two weights a pixel may hold 4/3 of it, below 2^64.)
MassUnit projection_unit(const MassTotals& totals, bool count_particles);
std::vector<std::uint64_t> project_counts(const Stream& stream, const SourceParticle* particles, std::size_t n,
                                          const MassUnit& unit, const ProjectionOptions& options);
std::vector<double> density_of_counts(const std::vector<std::uint64_t>& counts, const MassUnit& unit,
                                      const ProjectionOptions& options);

}  // namespace maki
