#include "src/groups/sphere.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace maki {
namespace {

struct Found {
  std::uint64_t squared;  // distance in units of the last bit
  std::uint64_t id;
  std::uint32_t index;
};

std::vector<Found> particles_within(const SortedParticles& set, const SourceParticle& centre, std::uint64_t reach) {
  const CellBox place = box_of(centre);
  std::vector<Found> found;
  std::vector<std::uint32_t> stack;
  if (set.size() > 0) stack.push_back(0);
  while (!stack.empty()) {
    const std::uint32_t cell = stack.back();
    stack.pop_back();
    if (gap_squared(place, set.tree.boxes[cell]) > reach) continue;
    if (set.tree.child_count[cell] > 0) {
      for (std::uint32_t k = 0; k < set.tree.child_count[cell]; ++k) stack.push_back(set.tree.first_child[cell] + k);
      continue;
    }
    const std::uint32_t first = set.tree.first[cell];
    for (std::uint32_t i = first; i < first + set.tree.count[cell]; ++i) {
      const std::uint64_t squared = distance_squared(centre, set.source[i]);
      if (squared <= reach) found.push_back({squared, set.ids[i], i});
    }
  }
  return found;
}

double volume(double radius) { return 4 * std::numbers::pi / 3 * radius * radius * radius; }

}  // namespace

Sphere::Sphere(const SortedParticles& particles, const SourceParticle& centre, double radius)
    : radius_(std::min(radius, 0.5)) {
  const double units = radius_ * kSideToUnits;
  std::vector<Found> found = particles_within(particles, centre, static_cast<std::uint64_t>(units * units));
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.squared != b.squared ? a.squared < b.squared : a.id < b.id;
  });
  double mass = 0;
  for (const Found& one : found) {
    mass += particles.source[one.index].mass;
    index_.push_back(one.index);
    distance_.push_back(std::sqrt(static_cast<double>(one.squared)) / kSideToUnits);
    enclosed_.push_back(mass);
  }
}

std::optional<Overdensity> overdensity(const Sphere& sphere, double density) {
  const std::size_t n = sphere.size();
  if (n == 0) return {};
  // Whether the particles 0 to i are as thin as that before the next one is reached.
  const auto thin_beyond = [&](std::size_t i) {
    const double next = i + 1 < n ? sphere.distance(i + 1) : sphere.radius();
    return sphere.mass_up_to(i) < density * volume(next);
  };
  const auto dense_at = [&](std::size_t i) { return sphere.mass_up_to(i) >= density * volume(sphere.distance(i)); };
  const auto of = [&](std::size_t i) {
    const double mass = sphere.mass_up_to(i);
    return Overdensity{mass, std::cbrt(mass / (density * volume(1)))};
  };
  std::size_t i = std::min(kInnermost, n) - 1;
  if (dense_at(i)) {
    while (i < n && !thin_beyond(i)) ++i;
    return i < n ? std::optional(of(i)) : std::nullopt;
  }
  while (i > 0 && !dense_at(i)) --i;  // the centre's own particle is at distance 0
  return of(i);
}

CircularPeak circular_peak(const Sphere& sphere, double limit) {
  CircularPeak peak;
  for (std::size_t i = kInnermost - 1; i < sphere.size() && sphere.distance(i) <= limit; ++i) {
    if (sphere.distance(i) <= 0) continue;
    const double ratio = sphere.mass_up_to(i) / sphere.distance(i);
    if (ratio > peak.mass_over_radius) peak = {ratio, sphere.distance(i)};
  }
  return peak;
}

}  // namespace maki
