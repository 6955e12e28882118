// Pixels in memory, simple drawing, and the colours of densities.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace maki
