#include "src/analysis/picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>

namespace maki {

namespace {

struct Glyph {
  char letter;
  std::array<std::uint8_t, 7> rows;  // from the top; the highest of 5 bits is the left dot
};

constexpr Glyph kGlyphs[] = {
    {'0', {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}}, {'1', {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e}},
    {'2', {0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f}}, {'3', {0x0e, 0x11, 0x01, 0x06, 0x01, 0x11, 0x0e}},
    {'4', {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}}, {'5', {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e}},
    {'6', {0x0e, 0x10, 0x10, 0x1e, 0x11, 0x11, 0x0e}}, {'7', {0x1f, 0x01, 0x02, 0x02, 0x04, 0x04, 0x04}},
    {'8', {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e}}, {'9', {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x01, 0x0e}},
    {'.', {0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c}}, {'-', {0x00, 0x00, 0x00, 0x0e, 0x00, 0x00, 0x00}},
    {'+', {0x00, 0x04, 0x04, 0x1f, 0x04, 0x04, 0x00}}, {'/', {0x01, 0x01, 0x02, 0x04, 0x08, 0x10, 0x10}},
    {'=', {0x00, 0x00, 0x1f, 0x00, 0x1f, 0x00, 0x00}}, {'A', {0x0e, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11}},
    {'U', {0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e}}, {'G', {0x0e, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0e}},
    {'M', {0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11}}, {'a', {0x00, 0x00, 0x0e, 0x01, 0x0f, 0x11, 0x0f}},
    {'c', {0x00, 0x00, 0x0e, 0x10, 0x10, 0x10, 0x0e}}, {'d', {0x01, 0x01, 0x0f, 0x11, 0x11, 0x11, 0x0f}},
    {'e', {0x00, 0x00, 0x0e, 0x11, 0x1f, 0x10, 0x0e}}, {'h', {0x10, 0x10, 0x1e, 0x11, 0x11, 0x11, 0x11}},
    {'i', {0x04, 0x00, 0x0c, 0x04, 0x04, 0x04, 0x0e}}, {'k', {0x10, 0x10, 0x12, 0x14, 0x18, 0x14, 0x12}},
    {'m', {0x00, 0x00, 0x1a, 0x15, 0x15, 0x15, 0x15}}, {'n', {0x00, 0x00, 0x1e, 0x11, 0x11, 0x11, 0x11}},
    {'o', {0x00, 0x00, 0x0e, 0x11, 0x11, 0x11, 0x0e}}, {'p', {0x00, 0x00, 0x1e, 0x11, 0x1e, 0x10, 0x10}},
    {'s', {0x00, 0x00, 0x0f, 0x10, 0x0e, 0x01, 0x1e}}, {'t', {0x08, 0x08, 0x1e, 0x08, 0x08, 0x09, 0x06}},
    {'u', {0x00, 0x00, 0x11, 0x11, 0x11, 0x13, 0x0d}}, {'x', {0x00, 0x00, 0x11, 0x0a, 0x04, 0x0a, 0x11}},
    {'y', {0x00, 0x00, 0x11, 0x11, 0x0f, 0x01, 0x0e}}, {'z', {0x00, 0x00, 0x1f, 0x02, 0x04, 0x08, 0x1f}},
    {'r', {0x00, 0x00, 0x16, 0x19, 0x10, 0x10, 0x10}}, {'(', {0x02, 0x04, 0x08, 0x08, 0x08, 0x04, 0x02}},
    {')', {0x08, 0x04, 0x02, 0x02, 0x02, 0x04, 0x08}},
};

constexpr Colour kRim{0, 0, 0};

}  // namespace

void Picture::fill(long x, long y, long width, long height, const Colour& colour) {
  const long right = std::min(x + width, static_cast<long>(width_)),
             bottom = std::min(y + height, static_cast<long>(height_));
  for (long row = std::max(0L, y); row < bottom; ++row) {
    for (long column = std::max(0L, x); column < right; ++column) {
      at(static_cast<std::size_t>(column), static_cast<std::size_t>(row)) = colour;
    }
  }
}

void Picture::text(long x, long y, const std::string& text, long scale, const Colour& colour) {
  // All rims first: they must not cover a neighbouring dot.
  for (const bool rim : {true, false}) {
    long left = x;
    for (const char letter : text) {
      const auto glyph = std::find_if(std::begin(kGlyphs), std::end(kGlyphs),
                                      [&](const Glyph& candidate) { return candidate.letter == letter; });
      if (glyph != std::end(kGlyphs)) {
        for (long row = 0; row < 7; ++row) {
          for (long dot = 0; dot < 5; ++dot) {
            if (!(glyph->rows[static_cast<std::size_t>(row)] >> (4 - dot) & 1)) continue;
            const long edge = rim ? std::max(1L, scale / 2) : 0;
            fill(left + dot * scale - edge, y + row * scale - edge, scale + 2 * edge, scale + 2 * edge,
                 rim ? kRim : colour);
          }
        }
      }
      left += 6 * scale;
    }
  }
}

// Colours for densities: from black over violet, red and orange to a pale yellow.

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

namespace {

// Particles in a pixel, averaged with its neighbours: below kFew they are spread further, above kMany they stay.
constexpr double kFew = 1, kMany = 6;

struct Map {
  std::size_t size;
  std::vector<double> values;
  double at(long x, long y) const {
    const long last = static_cast<long>(size) - 1;
    return values[static_cast<std::size_t>(std::clamp(y, 0L, last)) * size +
                  static_cast<std::size_t>(std::clamp(x, 0L, last))];
  }
};

// Mean of 2 x 2 pixels; the last ones of an odd size stand for those beyond the edge.
Map halved(const Map& map) {
  const std::size_t size = (map.size + 1) / 2;
  Map half{size, std::vector<double>(size * size)};
  for (std::size_t y = 0; y < size; ++y) {
    for (std::size_t x = 0; x < size; ++x) {
      const long left = 2 * static_cast<long>(x), low = 2 * static_cast<long>(y);
      half.values[y * size + x] =
          (map.at(left, low) + map.at(left + 1, low) + map.at(left, low + 1) + map.at(left + 1, low + 1)) / 4;
    }
  }
  return half;
}

// Weights 1 2 1 along both axes: smooths the grain of single pixels.
Map blurred(const Map& map) {
  Map result = map;
  for (long y = 0; y < static_cast<long>(map.size); ++y) {
    for (long x = 0; x < static_cast<long>(map.size); ++x) {
      const auto line = [&](long row) { return map.at(x - 1, row) + 2 * map.at(x, row) + map.at(x + 1, row); };
      result.values[static_cast<std::size_t>(y) * map.size + static_cast<std::size_t>(x)] =
          (line(y - 1) + 2 * line(y) + line(y + 1)) / 16;
    }
  }
  return result;
}

// At the centre of pixel (x, y) of a picture twice as fine: bilinear.
double between(const Map& coarse, std::size_t x, std::size_t y) {
  const double u = (static_cast<double>(x) - 0.5) / 2, v = (static_cast<double>(y) - 0.5) / 2;
  const long i = std::lround(std::floor(u)), j = std::lround(std::floor(v));
  const double fx = u - static_cast<double>(i), fy = v - static_cast<double>(j);
  return (1 - fy) * ((1 - fx) * coarse.at(i, j) + fx * coarse.at(i + 1, j)) +
         fy * ((1 - fx) * coarse.at(i, j + 1) + fx * coarse.at(i + 1, j + 1));
}

// The particles of `loose`, drawn at this width where `full`, the picture with all particles, is dense enough; the rest
// in a picture half as fine, down to `coarsest` pixels a side. `area`: of a pixel, in pixels of the finest picture.
Map smoothed(const Map& full, Map loose, double area, std::size_t coarsest) {
  if (full.size / 2 < coarsest) return blurred(blurred(loose));
  const Map around = blurred(full);
  Map kept = loose;
  for (std::size_t i = 0; i < loose.values.size(); ++i) {
    const double share = std::clamp((around.values[i] * area - kFew) / (kMany - kFew), 0.0, 1.0);
    kept.values[i] *= share * share * (3 - 2 * share);
    loose.values[i] -= kept.values[i];
  }
  const Map wide = smoothed(halved(full), halved(loose), 4 * area, coarsest);
  Map result = blurred(blurred(kept));
  for (std::size_t y = 0; y < full.size; ++y) {
    for (std::size_t x = 0; x < full.size; ++x) result.values[y * full.size + x] += between(wide, x, y);
  }
  return result;
}

}  // namespace

std::vector<double> smooth_where_sparse(const std::vector<double>& counts, std::size_t size) {
  // Pixels a side with which an even set of N particles still looks even: sqrt(N), about one particle a pixel, within
  // bounds. Fewer than kHandful particles are shown as points.
  constexpr double kHandful = 30, kWidest = 16, kNarrowest = 50;
  const double particles = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double coarsest = particles < kHandful ? kNarrowest : std::clamp(std::sqrt(particles), kWidest, kNarrowest);
  return smoothed({size, counts}, {size, counts}, 1, static_cast<std::size_t>(coarsest)).values;
}

}  // namespace maki
