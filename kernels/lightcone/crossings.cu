#include "kernels/lightcone/crossings.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/particles/types.hpp"

namespace maki {
namespace {

constexpr std::int64_t kFineSide = std::int64_t{1} << 48;
constexpr double kFineToSide = 1 / kSideToFine;

// An integer of 128 bits.
struct Wide {
  std::uint64_t high, low;
  MAKI_HD Wide operator+(Wide other) const {
    const std::uint64_t sum = low + other.low;
    return {high + other.high + (sum < low ? 1 : 0), sum};
  }
  MAKI_HD bool operator<(Wide other) const { return high < other.high || (high == other.high && low < other.low); }
};

// The square of x, |x| below 2^62, by halves of 32 bits.
MAKI_HD Wide squared(std::int64_t x) {
  const auto size = static_cast<std::uint64_t>(x < 0 ? -x : x);
  const std::uint64_t upper = size >> 32, lower = size & 0xffffffffu, mixed = upper * lower;
  return Wide{upper * upper + (mixed >> 31), lower * lower} + Wide{0, mixed << 33};
}

// An image's position from the observer, in units of 2^-48 side.
struct Place {
  std::int64_t x, y, z;
  MAKI_HD bool within(std::int64_t radius) const { return squared(x) + squared(y) + squared(z) < squared(radius); }
};

// The time at which |x| = R, for an image inside at the beginning of the drift and not at its end.
struct Meeting {
  Place begin;
  std::int64_t step[3];
  const DriftCubic& radius;

  MAKI_HD double coordinate(std::int64_t from, int axis, double part) const {
    return (static_cast<double>(from) + part * static_cast<double>(step[axis])) * kFineToSide;
  }
  MAKI_HD double excess(double part) const {
    const double x = coordinate(begin.x, 0, part), y = coordinate(begin.y, 1, part), z = coordinate(begin.z, 2, part);
    const double r = fmax(0.0, radius(part));
    return x * x + y * y + z * z - r * r;
  }
  // By the Illinois variant of regula falsi (Dowell & Jarratt 1971, BIT 11, 168).
  MAKI_HD double part() const {
    double low = 0, high = 1, at_low = excess(0), at_high = excess(1);
    if (at_low >= 0) return 0;
    if (at_high < 0) return 1;
    double middle = 0;
    for (int i = 0, side = 0; i < 40 && high - low > 1e-13; ++i) {
      middle = (low * at_high - high * at_low) / (at_high - at_low);
      const double at = excess(middle);
      if (at == 0) return middle;
      if (at < 0) {
        low = middle, at_low = at;
        if (side == -1) at_high /= 2;
        side = -1;
      } else {
        high = middle, at_high = at;
        if (side == 1) at_low /= 2;
        side = 1;
      }
      if (fabs(at) < 1e-15) break;
    }
    return middle;
  }
};

struct Images {
  const SourceParticle* source;
  const Remainder* remainder;
  ConstVectorView momentum;
  double factor;
  LightSphere sphere;
  const ImageColumn* columns;
  int count;

  // Bounds in single precision, wider than their rounding errors by far: the integers decide.
  struct Bounds {
    float inner, outer, margin;
  };
  MAKI_HD Bounds bounds() const {
    const auto before = static_cast<float>(static_cast<double>(sphere.before) * kFineToSide);
    const auto after = static_cast<float>(static_cast<double>(sphere.after) * kFineToSide);
    const float inner = after - 1e-4f, outer = 2 * before - after + 1e-4f;  // no particle is faster than light
    return {inner > 0 ? inner * inner : 0, outer * outer, 1e-5f * (1 + outer * outer)};
  }

  // visit(meeting) for each image of particle i that the sphere meets.
  template <class Visit>
  MAKI_HD void each(std::size_t i, const Visit& visit) const {
    const SourceParticle p = source[i];
    const Remainder r = remainder[i];
    const std::int64_t end[3] = {static_cast<std::int64_t>(fine_of(p.x, r.x)) - sphere.observer[0],
                                 static_cast<std::int64_t>(fine_of(p.y, r.y)) - sphere.observer[1],
                                 static_cast<std::int64_t>(fine_of(p.z, r.z)) - sphere.observer[2]};
    const std::int64_t step[3] = {static_cast<std::int64_t>(to_fine(momentum.x[i] * factor)),
                                  static_cast<std::int64_t>(to_fine(momentum.y[i] * factor)),
                                  static_cast<std::int64_t>(to_fine(momentum.z[i] * factor))};
    const Bounds bound = bounds();
    const auto x = static_cast<float>(static_cast<double>(end[0]) * kFineToSide);
    const auto y = static_cast<float>(static_cast<double>(end[1]) * kFineToSide);
    const auto z = static_cast<float>(static_cast<double>(end[2]) * kFineToSide);
    for (int k = 0; k < count; ++k) {
      const ImageColumn column = columns[k];
      const float across = (x + static_cast<float>(column.x)) * (x + static_cast<float>(column.x)) +
                           (y + static_cast<float>(column.y)) * (y + static_cast<float>(column.y));
      const float high = bound.outer - across + bound.margin, low = bound.inner - across - bound.margin;
      if (high < 0) continue;
      const float far = sqrtf(high) + 1e-4f, near = low > 0 ? sqrtf(low) - 1e-4f : -1;
      const auto test = [&](float from, float to) {
        const int first = static_cast<int>(ceilf(from - z)), last = static_cast<int>(floorf(to - z));
        for (int n = first > column.first ? first : column.first; n <= last && n <= column.last; ++n) {
          const Place now{end[0] + column.x * kFineSide, end[1] + column.y * kFineSide, end[2] + n * kFineSide};
          if (now.within(sphere.after)) continue;
          const Place begin{now.x - step[0], now.y - step[1], now.z - step[2]};
          if (begin.within(sphere.before)) visit(Meeting{begin, {step[0], step[1], step[2]}, sphere.radius});
        }
      };
      if (near <= 0) {
        test(-far, far);
      } else {
        test(-far, -near);
        test(near, far);
      }
    }
  }
};

struct CountCrossings {
  Images images;
  std::uint32_t* counts;
  MAKI_HD void operator()(std::size_t i) const {
    std::uint32_t found = 0;
    images.each(i, [&](const Meeting&) { ++found; });
    counts[i] = found;
  }
};

// Stores the crossings of particles from number `first` on.
struct StoreCrossings {
  Images images;
  std::size_t first;
  const std::uint64_t* places;
  std::uint64_t before;  // crossings of earlier particles
  const std::uint64_t* id;
  Crossing* crossings;
  MAKI_HD void operator()(std::size_t k) const {
    const std::size_t i = first + k;
    if (places[i] == places[i + 1]) return;
    std::uint64_t place = places[i] - before;
    images.each(i, [&](const Meeting& meeting) {
      const double part = meeting.part();
      crossings[place++] = {meeting.coordinate(meeting.begin.x, 0, part),
                            meeting.coordinate(meeting.begin.y, 1, part),
                            meeting.coordinate(meeting.begin.z, 2, part),
                            images.momentum.x[i],
                            images.momentum.y[i],
                            images.momentum.z[i],
                            images.source[i].mass,
                            id[i],
                            part};
    });
  }
};

double radius_of(std::int64_t fine) { return static_cast<double>(fine) * kFineToSide; }

double sphere_volume(double radius) { return 4.0 / 3 * 3.14159265358979 * radius * radius * radius; }

// Columns that are counted together, for about a quarter of a crossing a particle.
std::size_t columns_together(const LightSphere& sphere, std::size_t columns) {
  const double volume = sphere_volume(radius_of(sphere.before)) - sphere_volume(radius_of(sphere.after));
  return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(columns) / (1 + 4 * volume)));
}

// Crossings of all particles with some columns, for slices of the particles.
class Batches {
 public:
  Batches(const Stream& stream, const std::uint64_t* places, std::size_t particles)
      : stream_(stream), places_(places), particles_(particles), total_(place(particles)) {}
  std::uint64_t total() const { return total_; }

  struct Slice {
    std::size_t first, end;      // particles
    std::uint64_t before, upto;  // crossings of the particles before them, and with theirs
  };
  // The particles from `first` on that have at most `most` crossings together, but at least one particle.
  Slice from(std::size_t first, std::uint64_t before, std::uint64_t most) const {
    if (total_ - before <= most) return {first, particles_, before, total_};
    std::size_t low = first + 1, high = particles_;  // the slice ends in [low, high)
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (place(middle) - before <= most ? low : high) = middle;
    }
    return {first, low, before, place(low)};
  }

 private:
  std::uint64_t place(std::size_t i) const {
    std::uint64_t crossings = 0;
    copy_to_host(stream_, &crossings, places_ + i, sizeof crossings);
    return crossings;
  }

  const Stream& stream_;
  const std::uint64_t* places_;
  std::size_t particles_;
  std::uint64_t total_;
};

// An image of the box relative to the observer, widened by the particles' motion in a drift: its middle, and the
// distances of its points.
struct BoxImage {
  double middle[3], nearest, farthest;
};

BoxImage box_image(const LightSphere& sphere, const std::array<int, 3>& image, double wider) {
  BoxImage box{{}, 0, 0};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    box.middle[axis] = image[axis] + 0.5 - radius_of(sphere.observer[axis]);
    const double from_middle = std::fabs(box.middle[axis]), half = 0.5 + wider;
    box.nearest += std::pow(std::max(0.0, from_middle - half), 2);
    box.farthest += std::pow(from_middle + half, 2);
  }
  box.nearest = std::sqrt(box.nearest);
  box.farthest = std::sqrt(box.farthest);
  return box;
}

// Tested by the ball around the box.
bool may_be_seen(const BoxImage& box, double radius, const FieldOfView& view) {
  const double distance = std::hypot(box.middle[0], box.middle[1], box.middle[2]);
  if (view.cos_angle <= -1 || distance <= radius) return true;
  const double along =
      (box.middle[0] * view.axis[0] + box.middle[1] * view.axis[1] + box.middle[2] * view.axis[2]) / distance;
  const double angle = std::acos(std::clamp(along, -1.0, 1.0)) - std::asin(radius / distance);
  return angle <= std::acos(view.cos_angle) + 1e-9;
}

bool may_be_met(const LightSphere& sphere, const std::array<int, 3>& image, const FieldOfView& view) {
  const double before = radius_of(sphere.before), after = radius_of(sphere.after), wider = before - after + 1e-6;
  const BoxImage box = box_image(sphere, image, wider);
  return box.nearest <= before + wider && box.farthest >= after &&
         may_be_seen(box, std::sqrt(3.0) * (0.5 + wider), view);
}

}  // namespace

DriftCubic cubic_through(const std::array<double, 4>& parts, const std::array<double, 4>& values) {
  DriftCubic cubic;
  std::array<double, 4> differences = values;  // divided differences
  for (std::size_t order = 0; order < 4; ++order) {
    cubic.coefficient[order] = differences[0];
    if (order < 3) cubic.node[order] = parts[order];
    for (std::size_t i = 0; i + order + 1 < 4; ++i)
      differences[i] = (differences[i + 1] - differences[i]) / (parts[i + order + 1] - parts[i]);
  }
  return cubic;
}

bool FieldOfView::holds(double x, double y, double z) const {
  if (cos_angle <= -1) return true;
  return x * axis[0] + y * axis[1] + z * axis[2] >= cos_angle * std::sqrt(x * x + y * y + z * z);
}

std::vector<ImageColumn> image_columns(const LightSphere& sphere, const FieldOfView& view) {
  const int reach = static_cast<int>(std::ceil(radius_of(2 * sphere.before - sphere.after))) + 2;
  std::vector<ImageColumn> columns;
  for (int x = -reach; x <= reach; ++x) {
    for (int y = -reach; y <= reach; ++y) {
      ImageColumn column{x, y, 0, -1};
      for (int z = -reach; z <= reach; ++z) {
        if (!may_be_met(sphere, {x, y, z}, view)) continue;
        if (column.last < column.first) column.first = z;
        column.last = z;
      }
      if (column.first <= column.last) columns.push_back(column);
    }
  }
  return columns;
}

void find_crossings(const Stream& stream, const Particles& particles, double factor, const LightSphere& sphere,
                    const std::vector<ImageColumn>& columns,
                    const std::function<void(const std::vector<Crossing>&)>& take) {
  const std::size_t n = particles.size();
  if (n == 0 || columns.empty() || sphere.before <= 0) return;
  DeviceBuffer<ImageColumn> images("lightcone.columns");
  images.upload(stream, columns);
  DeviceBuffer<std::uint32_t> counts("lightcone.counts", n);
  DeviceBuffer<std::uint64_t> places("lightcone.places", n + 1);
  DeviceBuffer<Crossing> crossings("lightcone.crossings");
  const std::size_t together = columns_together(sphere, columns.size()), most = n / 4 + 1;
  for (std::size_t first = 0; first < columns.size(); first += together) {
    const Images some{particles.source.data(),
                      particles.remainder.data(),
                      particles.momentum.view(),
                      factor,
                      sphere,
                      images.data() + first,
                      static_cast<int>(std::min(together, columns.size() - first))};
    launch(stream, "lightcone.count", n, CountCrossings{some, counts.data()});
    exclusive_scan(stream, counts.data(), places.data(), n);
    const Batches batches(stream, places.data(), n);
    for (Batches::Slice slice{}; slice.upto < batches.total();) {
      slice = batches.from(slice.end, slice.upto, most);
      crossings.resize(most);  // as one block, once
      crossings.resize(slice.upto - slice.before);
      launch(stream, "lightcone.store", slice.end - slice.first,
             StoreCrossings{some, slice.first, places.data(), slice.before, particles.id.data(), crossings.data()});
      take(crossings.download(stream));
    }
  }
}

}  // namespace maki
