#include "src/lightcone/sky_map.hpp"

#include <chealpix.h>

#include <algorithm>
#include <cmath>

#include "host/comm/exchange_all.hpp"

namespace maki {

double sky_quantum(float heaviest, double most) {
  constexpr int kMantissa = 24;  // of a float: masses of the largest exponent are exact
  const int spare = static_cast<int>(std::ceil(std::log2(std::max(most, 1.0)))) - (64 - kMantissa);
  return std::ldexp(1.0, (heaviest > 0 ? std::ilogb(heaviest) : 0) - (kMantissa - 1) + std::max(0, spare));
}

std::uint64_t sky_pixel(int nside, const std::array<double, 3>& direction) {
  std::int64_t pixel = 0;
  vec2pix_ring64(nside, direction.data(), &pixel);
  return static_cast<std::uint64_t>(pixel);
}

std::uint64_t sky_pixels(int nside) {
  return 12 * static_cast<std::uint64_t>(nside) * static_cast<std::uint64_t>(nside);
}

void join_pixels(std::vector<PixelCount>& counts) {
  std::sort(counts.begin(), counts.end(), [](PixelCount a, PixelCount b) { return a.pixel < b.pixel; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (kept > 0 && counts[kept - 1].pixel == counts[i].pixel)
      counts[kept - 1].count += counts[i].count;
    else
      counts[kept++] = counts[i];
  }
  counts.resize(kept);
}

SkyMap::SkyMap(const Communicator& ranks, int nside)
    : ranks_(ranks), nside_(nside), share_(share_of(sky_pixels(nside), ranks.rank(), ranks.size())),
      counts_(share_.size()) {}

int SkyMap::holder_of(std::uint64_t pixel) const {
  const std::uint64_t all = sky_pixels(nside_), size = static_cast<std::uint64_t>(ranks_.size());
  int rank = static_cast<int>(pixel * size / all);
  while (rank + 1 < ranks_.size() && share_begin(all, rank + 1, ranks_.size()) <= pixel) ++rank;
  return rank;
}

void SkyMap::add(const std::vector<PixelCount>& found) {
  std::vector<std::vector<PixelCount>> out(static_cast<std::size_t>(ranks_.size()));
  for (const PixelCount& one : found) out[static_cast<std::size_t>(holder_of(one.pixel))].push_back(one);
  for (const std::vector<PixelCount>& from : exchange_all(ranks_, std::move(out)))
    for (const PixelCount& one : from) counts_[one.pixel - share_.first] += one.count;
}

}  // namespace maki
