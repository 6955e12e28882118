// Spectra of a snapshot as text files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/measure/spectra.hpp"
#include "kernels/measure/power_spectrum.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// Bins of one spectrum; arrays of one length. P is the power of the density contrast as measured, shot noise included,
// in length unit^3; K in radians per length unit.
struct PowerTable {
  std::vector<double> k;  // mean over the modes of the bin
  std::vector<double> power;
  std::vector<std::uint64_t> modes;  // Fourier modes in the bin
  std::vector<int> folding = {};     // number of foldings of the box; empty: 1 for all
  // P of linear theory and HALOFIT at k; empty where unknown.
  std::vector<double> linear = {}, nonlinear = {};
  double shot_noise = 0;  // P of a random distribution: V sum m^2 / (sum m)^2
  int mesh = 0;           // cells a side
  double growth = 0;      // linear growth factor, 1 today; 0 where unknown
  std::string length_unit = "Mpc/h";
};

// Writes the columns K, Delta2, P, ModeCount and Shot, as GADGET-4 calls them, and Linear, NonLinear, P/Linear,
// P/NonLinear and Folding. Delta2 = K^3 P / (2 pi^2); Shot is the Delta2 of shot noise; Linear and NonLinear are the P
// of linear theory and of HALOFIT (0, as are the ratios, where unknown). GADGET-4's P is ours over the volume.
// GADGET-4's first lines (time, bins, box, mesh, growth) are comments here, with the provenance, so that numpy.loadtxt
// reads the file as it is. Bins without modes are left out. Throws Error where the file exists (unless `overwrite`) or
// cannot be written.
void write_power_file(const std::string& path, const PowerTable& table, const SnapshotHeader& header,
                      const Provenance& provenance, bool overwrite = false);

// Two sets; units as above.
struct CrossTable {
  CrossPower power;
  int mesh = 0;
  std::string length_unit = "Mpc/h";
};
// The names of the sets in the file.
struct SetNames {
  std::string first, second;
};
// Writes the columns K, P1, P2, P12, R = P12 / sqrt(P1 P2), ModeCount and Folding, with comments as in
// write_power_file(). Throws Error as it does.
void write_cross_power_file(const std::string& path, const CrossTable& table, const SetNames& names,
                            const SnapshotHeader& header, const Provenance& provenance, bool overwrite = false);

// The bispectrum of one set: equilateral and squeezed triangles. Units as in PowerTable, B in length unit^6.
struct BispectrumTable {
  MeasuredBispectrum measured;
  // B at tree level, the mean over each shell's triangles; empty where unknown.
  std::vector<double> equilateral_tree = {}, squeezed_tree = {};
  int mesh = 0;
  std::string length_unit = "Mpc/h";
};
// Writes K and P of each shell and, for its equilateral (Eq) and its squeezed (Sq) triangles, the number, the mean B,
// shot noise and B at tree level (0: unknown); comments and errors as in write_power_file().
void write_bispectrum_file(const std::string& path, const BispectrumTable& table, const SnapshotHeader& header,
                           const Provenance& provenance, bool overwrite = false);

}  // namespace maki
