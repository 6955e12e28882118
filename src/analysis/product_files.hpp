// What is measured of a snapshot as files: its power spectrum as text, its projected density as PNG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/io/snapshot.hpp"

namespace maki {

// Bins of one spectrum; arrays of one length. P is the power of the density contrast as measured, shot noise included,
// in length unit^3; K in radians per length unit.
struct PowerTable {
  std::vector<double> k;  // mean over the modes of the bin
  std::vector<double> power;
  std::vector<std::uint64_t> modes;  // Fourier modes in the bin
  std::vector<double> linear = {};   // P of linear theory at k; empty where unknown
  double shot_noise = 0;             // P of a random distribution: V sum m^2 / (sum m)^2
  int mesh = 0;                      // cells a side
  double growth = 0;                 // linear growth factor, 1 today; 0 where unknown
  std::string length_unit = "Mpc/h";
};

// Writes the columns K, Delta2, P, ModeCount and Shot, as GADGET-4 calls them, and Linear. Delta2 = K^3 P / (2 pi^2);
// Shot is the Delta2 of shot noise; Linear is the P of linear theory, 0 where it is unknown. GADGET-4's P is ours over
// the volume. What GADGET-4 puts into the first lines (time, bins, box, mesh, growth) stands in comments, with the
// provenance, so that numpy.loadtxt reads the file as it is. Bins without modes are left out. Throws Error where the
// file exists (unless `overwrite`) or cannot be written.
void write_power_file(const std::string& path, const PowerTable& table, const SnapshotHeader& header,
                      const Provenance& provenance, bool overwrite = false);

// The projected density of a snapshot as a PNG file.
struct ImageOptions {
  double low = 0, high = 0;  // ends of the colour scale, in units of the mean; where 0 (high 0: both), from the data
  double side = 0;           // width of the picture in length units; 0: no scale bar
  std::string length_unit = "Mpc/h";
  std::string label = {};  // upper left corner: "z = 0.00"
  bool decorate = true;    // scale bar, colour bar, label
  bool overwrite = false;
};

// Writes `density` (width x height numbers >= 0, x fastest, y upwards) with a logarithmic colour scale, a scale bar and
// a colour bar in units of the mean, and the provenance in tEXt chunks. Throws Error where the file exists (unless
// options.overwrite) or cannot be written.
void write_image(const std::string& path, const std::vector<float>& density, std::size_t width, std::size_t height,
                 const ImageOptions& options, const Provenance& provenance);

}  // namespace maki
