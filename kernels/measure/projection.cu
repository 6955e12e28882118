#include "kernels/measure/power_spectrum.hpp"

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
  std::uint32_t front, left, bottom;
  std::uint64_t depth, extent;  // 2^32: all of it
  int bits;
  std::uint32_t equal_units;
  double units_per_mass;

  // A coordinate's positions in the window, in 2^-32 pixels: none where it is more than a pixel outside, two where the
  // window is nearly the whole box, else one. Returns their number.
  MAKI_HD int positions(std::uint32_t p, std::uint32_t from, int n, std::int64_t* found) const {
    const std::uint32_t inside = p - from, before = from - p;
    const std::uint64_t pixel = extent / static_cast<std::uint32_t>(n);
    const auto pixels = [&](std::uint32_t distance) {
      return static_cast<std::int64_t>((static_cast<std::uint64_t>(distance) << 32) / extent *
                                       static_cast<std::uint32_t>(n));
    };
    int count = 0;
    if (inside < extent + pixel) found[count++] = pixels(inside);
    if (inside >= extent && before <= pixel) found[count++] = -pixels(before);
    return count;
  }
  // Pixel number, or -1 outside of a cut window.
  MAKI_HD int pixel(int i, int n) const {
    if (i >= 0 && i < n) return i;
    return extent >> 32 ? (i + n) % n : -1;
  }

  MAKI_HD void operator()(std::size_t n) const {
    const SourceParticle p = particles[n];
    const std::uint32_t along = axis == 0 ? p.x : axis == 1 ? p.y : p.z;
    if (along - front >= depth) return;
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
  constexpr double kLeast = 1e-8;  // some units of coordinates
  const auto fits = [](double fraction) { return fraction >= kLeast && fraction <= 1; };
  if (o.axis < 0 || o.axis > 2 || o.width < 4 || o.height < 4 || !fits(o.depth) || !fits(o.extent))
    throw Error("cannot project the density",
                "axis " + std::to_string(o.axis) + ", " + std::to_string(o.width) + " x " + std::to_string(o.height) +
                    " pixels, depth " + std::to_string(o.depth) + ", extent " + std::to_string(o.extent),
                "use an axis from 0 to 2, at least 4 x 4 pixels, and depth and extent of 1e-8 to 1");
}

std::uint64_t units(double fraction) { return static_cast<std::uint64_t>(fraction * kSideToUnits + 0.5); }

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
  const auto wrapped = [](double fraction) {
    return static_cast<std::uint32_t>(units(fraction - std::floor(fraction)));
  };
  launch(stream, "projection.add", n,
         AddToPicture{particles, pixels.data(), o.axis, o.width, o.height, wrapped(o.front), wrapped(o.left),
                      wrapped(o.bottom), units(o.depth), units(o.extent), unit.bits, unit.equal_units,
                      unit.units_per_mass});
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
