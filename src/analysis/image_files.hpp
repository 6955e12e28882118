// Pictures as PNG files: the projected density of a snapshot, and a picture read back and made smaller.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/io/snapshot.hpp"

namespace maki {

// The projected density of a snapshot as a PNG file.
struct ImageOptions {
  double low = 0, high = 0;  // ends of the colour scale, in units of the mean; 0: from the data (high 0: both)
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

// The picture in a PNG file, reduced to at most `pixels` along its longer side, for pages that embed pictures. Returns
// the bytes of a PNG with the palette density_colours(). Each pixel is the mean of those that it replaces. Throws Error
// where the file cannot be read.
std::vector<unsigned char> thumbnail_of(const std::string& path, std::size_t pixels);

}  // namespace maki
