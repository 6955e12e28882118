#include "src/groups/sphere.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "src/groups/links.hpp"

namespace maki {
namespace {

double volume(double radius) { return 4 * std::numbers::pi / 3 * radius * radius * radius; }

// Own particles in the spheres of one rank's queries, and their number for each query.
void answer(const SortedParticles& own, const std::vector<SphereQuery>& queries, std::vector<std::uint64_t>& counts,
            std::vector<ParticleRecord>& particles) {
  std::vector<std::vector<std::uint32_t>> found(queries.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t q = 0; q < queries.size(); ++q)
    found[q] = particles_near(own, box_of(queries[q].centre), squared_units(queries[q].radius));
  for (const std::vector<std::uint32_t>& indices : found) {
    counts.push_back(indices.size());
    for (const std::uint32_t i : indices) particles.push_back(own.record(i));
  }
}

}  // namespace

Sphere::Sphere(const SourceParticle& centre, double radius, std::vector<ParticleRecord> found)
    : radius_(radius), particles_(std::move(found)) {
  std::sort(particles_.begin(), particles_.end(), [&](const ParticleRecord& a, const ParticleRecord& b) {
    const std::uint64_t of_a = distance_squared(centre, a.source), of_b = distance_squared(centre, b.source);
    return of_a != of_b ? of_a < of_b : a.id < b.id;
  });
  double mass = 0;
  for (const ParticleRecord& one : particles_) {
    mass += one.source.mass;
    distance_.push_back(std::sqrt(static_cast<double>(distance_squared(centre, one.source))) / kSideToUnits);
    enclosed_.push_back(mass);
  }
}

std::vector<Sphere> SphereSource::look_up(const std::vector<SphereQuery>& queries) const {
  const std::size_t size = boxes_.places.size();
  std::vector<std::vector<SphereQuery>> asked(size);
  std::vector<std::vector<std::size_t>> number(size);  // of the queries to each rank, in `queries`
  for (std::size_t q = 0; q < queries.size(); ++q)
    for (std::size_t r = 0; r < size; ++r) {
      if (!boxes_.near(r, box_of(queries[q].centre), squared_units(queries[q].radius))) continue;
      asked[r].push_back(queries[q]);
      number[r].push_back(q);
    }
  std::vector<std::vector<std::uint64_t>> counts(size);
  std::vector<std::vector<ParticleRecord>> answers(size);
  const auto to_answer = exchange_all(ranks_, std::move(asked));
  for (std::size_t r = 0; r < size; ++r) answer(own_, to_answer[r], counts[r], answers[r]);
  counts = exchange_all(ranks_, std::move(counts));
  answers = exchange_all(ranks_, std::move(answers));
  std::vector<std::vector<ParticleRecord>> found(queries.size());
  for (std::size_t r = 0; r < size; ++r) {
    auto next = answers[r].cbegin();
    for (std::size_t k = 0; k < number[r].size(); ++k) {
      const auto end = next + static_cast<std::ptrdiff_t>(counts[r][k]);
      found[number[r][k]].insert(found[number[r][k]].end(), next, end);
      next = end;
    }
  }
  std::vector<std::optional<Sphere>> made(queries.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t q = 0; q < queries.size(); ++q)
    made[q].emplace(queries[q].centre, queries[q].radius, std::move(found[q]));
  std::vector<Sphere> spheres;
  for (std::optional<Sphere>& sphere : made) spheres.push_back(std::move(*sphere));
  return spheres;
}

std::optional<Overdensity> overdensity(const Sphere& sphere, double density) {
  const std::size_t n = sphere.size();
  if (n == 0) return {};
  // Whether the mean density of particles 0 to i falls to `density` before the next particle.
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
