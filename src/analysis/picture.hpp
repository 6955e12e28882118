// Pixels in memory, and the little drawing that a plot needs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/analysis/colour_map.hpp"

namespace maki {

// 8-bit RGB, the top row first.
class Picture {
 public:
  Picture(std::size_t width, std::size_t height) : width_(width), height_(height), pixels_(width * height) {}
  std::size_t width() const { return width_; }
  std::size_t height() const { return height_; }
  Colour& at(std::size_t x, std::size_t y) { return pixels_[y * width_ + x]; }
  const Colour& at(std::size_t x, std::size_t y) const { return pixels_[y * width_ + x]; }

  // What lies outside of the picture is cut off.
  void fill(long x, long y, long width, long height, const Colour& colour);
  // Letters of 5 x 7 dots, a dot being `scale` pixels, with a dark rim; (x, y) is the upper left corner. Knows what
  // numbers, units and "z = 0" need; other letters stay blank.
  void text(long x, long y, const std::string& text, long scale, const Colour& colour);
  static long text_width(const std::string& text, long scale) { return static_cast<long>(text.size()) * 6 * scale; }

 private:
  std::size_t width_, height_;
  std::vector<Colour> pixels_;
};

}  // namespace maki
