#include "kernels/measure/power_spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/device/buffer.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/error.hpp"
#include "kernels/mesh/cloud.hpp"
#include "kernels/mesh/mass_unit.hpp"

namespace maki {
namespace {

using Count = unsigned long long;

MAKI_HD void add_count(Count* to, Count value) {
#if defined(__CUDA_ARCH__)
  atomicAdd(to, value);
#else
  __atomic_fetch_add(to, value, __ATOMIC_RELAXED);  // a picture at an output: not performance-critical
#endif
}

struct AddToPicture {
  const SourceParticle* particles;
  Count* pixels;
  int axis, width, height;
  bool periodic;
  std::int64_t front, left, bottom, depth, extent;  // units of coordinates, 2^32 to a side; periodic: begins below 2^32
  int coarser;                                      // bits by which the extent is above 2^32 units, else 0
  int bits;
  std::uint32_t equal_units;
  double units_per_mass;

  // How far p lies behind a begin; in a periodic box around its edge, and never below 0.
  MAKI_HD std::int64_t distance(std::uint32_t p, std::int64_t from) const {
    if (periodic) return p - static_cast<std::uint32_t>(from);
    return static_cast<std::int64_t>(p) - from;
  }
  // A length from 0 to less than two extents, in 2^-32 pixels.
  MAKI_HD std::int64_t in_pixels(std::int64_t length, int n) const {
    const bool behind = length >= extent;
    const auto rest = static_cast<std::uint64_t>(behind ? length - extent : length);
    const std::uint64_t share = (rest >> coarser << 32) / (static_cast<std::uint64_t>(extent) >> coarser);
    return (static_cast<std::int64_t>(share) + (static_cast<std::int64_t>(behind) << 32)) * n;
  }
  // A coordinate's positions in the window, in 2^-32 pixels: none where it is more than a pixel outside, two where the
  // window is nearly the whole periodic box, else one. Returns their number.
  MAKI_HD int positions(std::uint32_t p, std::int64_t from, int n, std::int64_t* found) const {
    const std::int64_t inside = distance(p, from);
    const std::int64_t before = periodic ? distance(static_cast<std::uint32_t>(from), p) : -inside;
    const std::int64_t pixel = extent / n;
    int count = 0;
    if (inside >= 0 && inside < extent + pixel) found[count++] = in_pixels(inside, n);
    if ((inside < 0 || inside >= extent) && before >= 0 && before <= pixel) found[count++] = -in_pixels(before, n);
    return count;
  }
  // Pixel number, or -1 outside of a window that is cut.
  MAKI_HD int pixel(int i, int n) const {
    if (i >= 0 && i < n) return i;
    return periodic && extent >> 32 ? (i + n) % n : -1;
  }

  MAKI_HD void operator()(std::size_t n) const {
    const SourceParticle p = particles[n];
    const std::uint32_t along = axis == 0 ? p.x : axis == 1 ? p.y : p.z;
    const std::int64_t behind = distance(along, front);
    if (behind < 0 || behind >= depth) return;
    std::int64_t u[2], v[2];
    const int count_u = positions(axis == 0 ? p.y : p.x, left, width, u);
    const int count_v = positions(axis == 2 ? p.y : p.z, bottom, height, v);
    for (int i = 0; i < count_u; ++i)
      for (int j = 0; j < count_v; ++j) add(p, u[i], v[j]);
  }
  MAKI_HD void add(const SourceParticle& p, std::int64_t at_u, std::int64_t at_v) const {
    // Pixel i covers [i, i + 1): the particle's own pixel and its two neighbours, by its position in that pixel.
    std::uint32_t wu[3], wv[3], share[3];
    integer_weights<3>(static_cast<std::uint32_t>(at_u), bits, wu);
    integer_weights<3>(static_cast<std::uint32_t>(at_v), bits, wv);
    const int u0 = static_cast<int>(at_u >> 32) - 1, v0 = static_cast<int>(at_v >> 32) - 1;
    split_units<3>(units_of(p.mass, equal_units, units_per_mass), bits, wv, share);
    for (int j = 0; j < 3; ++j) {
      const int y = pixel(v0 + j, height);
      for (int i = 0; i < 3 && y >= 0; ++i) {
        const int x = pixel(u0 + i, width);
        if (x >= 0) add_count(pixels + static_cast<std::size_t>(y) * width + x, static_cast<Count>(share[j]) * wu[i]);
      }
    }
  }
};

void check_options(const ProjectionOptions& o) {
  const double most = o.periodic ? 1 : kMostProjected;
  const auto fits = [most](double sides) { return sides >= kLeastProjected && sides <= most; };
  if (o.axis < 0 || o.axis > 2 || o.width < 4 || o.height < 4 || !fits(o.depth) || !fits(o.extent))
    throw Error("cannot project the density",
                "axis " + std::to_string(o.axis) + ", " + std::to_string(o.width) + " x " + std::to_string(o.height) +
                    " pixels, depth " + std::to_string(o.depth) + ", extent " + std::to_string(o.extent),
                "use an axis from 0 to 2, at least 4 x 4 pixels, and depth and extent of 1e-8 to 1, in a box that is "
                "not periodic to 2^20");
}

// To the nearest.
std::int64_t units(double sides) { return static_cast<std::int64_t>(std::floor(sides * kSideToUnits + 0.5)); }

// The begin of a slab or window: in the box where that is periodic; else as it is, where anything could be seen from it.
std::int64_t begin_units(double sides, bool periodic) {
  constexpr double kFar = 4 * kMostProjected;
  if (!periodic) return units(std::clamp(sides, -kFar, kFar));
  return static_cast<std::uint32_t>(units(sides - std::floor(sides)));
}

}  // namespace

MassUnit projection_unit(const MassTotals& totals, bool count_particles) {
  MassTotals counted = totals;
  if (count_particles) counted = {totals.particles, {1, 1, false, false}, {}, 0};
  return choose_mass_unit(Assignment::kTsc, 8, counted);
}

std::vector<std::uint64_t> project_counts(const Stream& stream, const SourceParticle* particles, std::size_t n,
                                          const MassUnit& unit, const ProjectionOptions& o) {
  check_options(o);
  DeviceBuffer<Count> pixels("projection.pixels");
  pixels.resize(static_cast<std::size_t>(o.width) * static_cast<std::size_t>(o.height));
  pixels.fill_zero(stream);
  const std::int64_t extent = units(o.extent);
  int coarser = 0;
  while (extent > std::int64_t{1} << (32 + coarser)) ++coarser;
  launch(stream, "projection.add", n,
         AddToPicture{particles, pixels.data(), o.axis, o.width, o.height, o.periodic, begin_units(o.front, o.periodic),
                      begin_units(o.left, o.periodic), begin_units(o.bottom, o.periodic), units(o.depth), extent,
                      coarser, unit.bits, unit.equal_units, unit.units_per_mass});
  const std::vector<Count> counts = pixels.download(stream);
  return {counts.begin(), counts.end()};
}

std::vector<double> density_of_counts(const std::vector<std::uint64_t>& counts, const MassUnit& unit,
                                      const ProjectionOptions& o) {
  const double pixel_area = o.extent * o.extent / (static_cast<double>(o.width) * o.height);
  std::vector<double> density(counts.size());
  const double per_count = unit.quantum / pixel_area;
  for (std::size_t i = 0; i < counts.size(); ++i) density[i] = static_cast<double>(counts[i]) * per_count;
  return density;
}

}  // namespace maki
