// Pictures: pixels in memory, simple drawing, the colours of densities; and PNG files: the projected density of a
// snapshot, and a picture read back and made smaller.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/io/snapshot.hpp"

namespace maki {

using Colour = std::array<std::uint8_t, 3>;  // sRGB

// 256 colours whose perceived lightness rises in equal steps: a path in the OKLCh space (Ottosson 2020), lightness
// linear, hue from violet to yellow, chroma as large as a smooth bump and the sRGB gamut allow.
const std::array<Colour, 256>& density_colours();

// 8-bit RGB, the top row first.
class Picture {
 public:
  Picture(std::size_t width, std::size_t height) : width_(width), height_(height), pixels_(width * height) {}
  std::size_t width() const { return width_; }
  std::size_t height() const { return height_; }
  Colour& at(std::size_t x, std::size_t y) { return pixels_[y * width_ + x]; }
  const Colour& at(std::size_t x, std::size_t y) const { return pixels_[y * width_ + x]; }

  // Clipped to the picture.
  void fill(long x, long y, long width, long height, const Colour& colour);
  // Letters of 5 x 7 dots, a dot being `scale` pixels, with a dark rim; (x, y) is the upper left corner. Only letters
  // of numbers, units and "z = 0" are known; others stay blank.
  void text(long x, long y, const std::string& text, long scale, const Colour& colour);
  static long text_width(const std::string& text, long scale) { return static_cast<long>(text.size()) * 6 * scale; }

 private:
  std::size_t width_, height_;
  std::vector<Colour> pixels_;
};

// Particle counts, smoothed where they are few. `counts` are particles a pixel (fractions allowed) of a square picture
// of `size`^2 pixels. Where a pixel and its neighbours hold fewer than a handful of particles, these are spread over
// coarser pictures, each half as wide as the last, until there are enough. Dense pixels do not change. The sum is
// conserved except at the edges.
inline constexpr double kSmoothingBytes = 65;  // a pixel, on the host
std::vector<double> smooth_where_sparse(const std::vector<double>& counts, std::size_t size);

// The projected density of a snapshot as a PNG file.
struct ImageOptions {
  double low = 0, high = 0;  // ends of the colour scale, in units of the mean; 0: from the data
  double side = 0;           // width of the picture in length units; 0: no scale bar
  std::string length_unit = "Mpc/h";
  std::string label = {};  // upper left corner: "z = 0.00"
  bool overwrite = false;
};

// Writes `density` (width x height numbers >= 0 in units of the mean, x fastest, y upwards) with a logarithmic colour
// scale, a scale bar and a colour bar, and the provenance in tEXt chunks. Throws Error where the file exists (unless
// options.overwrite) or cannot be written.
void write_image(const std::string& path, const std::vector<float>& density, std::size_t width, std::size_t height,
                 const ImageOptions& options, const Provenance& provenance);

// The picture in a PNG file, reduced to at most `pixels` along its longer side, for pages that embed pictures. Returns
// the bytes of a PNG with the palette density_colours(). Each pixel is the mean of those that it replaces. Throws Error
// where the file cannot be read.
std::vector<unsigned char> thumbnail_of(const std::string& path, std::size_t pixels);

}  // namespace maki
