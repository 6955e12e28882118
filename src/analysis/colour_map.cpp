// Colours for densities: from black over violet, red and orange to a pale yellow.
#include "src/analysis/picture.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace maki {

namespace {

using Triple = std::array<double, 3>;

// OKLab to linear sRGB; the constants are those of the definition of OKLab.
Triple to_linear_rgb(double lightness, double a, double b) {
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

bool in_gamut(const Triple& rgb) {
  return std::all_of(rgb.begin(), rgb.end(), [](double x) { return x >= 0 && x <= 1; });
}

Triple from_polar(double lightness, double chroma, double hue) {
  return to_linear_rgb(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
}

std::uint8_t encode(double linear) {
  const double x = std::clamp(linear, 0.0, 1.0);
  const double srgb = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * srgb));
}

double decode(std::uint8_t value) {
  const double x = value / 255.0;
  return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
}

// The colour at t in [0, 1].
Colour colour_at(double t) {
  const double l = 0.97 * t;
  const double degrees = 280 + 180 * std::pow(t, 0.9);  // violet, through red (380), to yellow (460 = 100)
  const double hue = degrees * std::numbers::pi / 180;
  double chroma = 0.19 * std::pow(std::sin(std::numbers::pi * std::pow(t, 0.85)), 0.75) + 0.05 * t;
  if (!in_gamut(from_polar(l, chroma, hue))) {
    double inside = 0;
    for (int step = 0; step < 30; ++step) {
      const double middle = 0.5 * (inside + chroma);
      (in_gamut(from_polar(l, middle, hue)) ? inside : chroma) = middle;
    }
    chroma = inside;
  }
  const Triple rgb = from_polar(l, chroma, hue);
  return {encode(rgb[0]), encode(rgb[1]), encode(rgb[2])};
}

}  // namespace

const std::array<Colour, 256>& density_colours() {
  static const std::array<Colour, 256> colours = [] {
    std::array<Colour, 256> table{};
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = colour_at(static_cast<double>(i) / 255);
    return table;
  }();
  return colours;
}

double lightness(const Colour& colour) {
  const double r = decode(colour[0]), g = decode(colour[1]), b = decode(colour[2]);
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s;
}

}  // namespace maki
