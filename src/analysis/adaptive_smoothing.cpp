#include "src/analysis/adaptive_smoothing.hpp"

#include <algorithm>
#include <cmath>

namespace maki {
namespace {

// Particles in a pixel, its neighbours considered: below the first they are spread wider, above the second they stay.
constexpr double kFew = 1, kMany = 6;
constexpr std::size_t kCoarsest = 16;

struct Map {
  std::size_t size;
  std::vector<double> values;
  double at(long x, long y) const {
    const long last = static_cast<long>(size) - 1;
    return values[static_cast<std::size_t>(std::clamp(y, 0L, last)) * size +
                  static_cast<std::size_t>(std::clamp(x, 0L, last))];
  }
};

// Mean of 2 x 2 pixels.
Map halved(const Map& map) {
  Map half{map.size / 2, std::vector<double>(map.size * map.size / 4)};
  for (std::size_t y = 0; y < half.size; ++y) {
    for (std::size_t x = 0; x < half.size; ++x) {
      const double* row = &map.values[2 * y * map.size + 2 * x];
      half.values[y * half.size + x] = (row[0] + row[1] + row[map.size] + row[map.size + 1]) / 4;
    }
  }
  return half;
}

// Weights 1 2 1 along both axes: takes the grain of single pixels away.
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

// What `loose` holds is drawn at this width where `full`, the picture with all particles, is dense enough, and the rest
// at twice the width. `area` of a pixel in those of the finest picture.
Map smoothed(const Map& full, Map loose, double area) {
  if (full.size % 2 != 0 || full.size / 2 < kCoarsest) return blurred(blurred(loose));
  const Map around = blurred(full);
  Map kept = loose;
  for (std::size_t i = 0; i < loose.values.size(); ++i) {
    const double share = std::clamp((around.values[i] * area - kFew) / (kMany - kFew), 0.0, 1.0);
    kept.values[i] *= share * share * (3 - 2 * share);
    loose.values[i] -= kept.values[i];
  }
  const Map wide = smoothed(halved(full), halved(loose), 4 * area);
  Map result = blurred(kept);
  for (std::size_t y = 0; y < full.size; ++y) {
    for (std::size_t x = 0; x < full.size; ++x) result.values[y * full.size + x] += between(wide, x, y);
  }
  return result;
}

}  // namespace

std::vector<double> smooth_where_sparse(const std::vector<double>& counts, std::size_t size) {
  return smoothed({size, counts}, {size, counts}, 1).values;
}

}  // namespace maki
