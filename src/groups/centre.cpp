#include "src/groups/centre.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "kernels/particles/particles.hpp"
#include "src/groups/links.hpp"

namespace maki {
namespace {

// ---- potentials -----------------------------------------------------------------------------------------------------

constexpr double kOpening = 0.5;
constexpr std::uint32_t kLeafSize = 8;

// The members of one group as arrays. Lengths in units of the last bit: potentials are compared, not reported.
struct Cluster {
  std::vector<std::uint32_t> x, y, z;
  std::vector<double> mass;
  double softening2;

  Cluster(const GroupMembers& members, std::size_t group, double softening)
      : softening2(softening * softening * kSideToUnits * kSideToUnits) {
    for (const ParticleRecord* member = members.begin(group); member != members.end(group); ++member) {
      x.push_back(member->source.x);
      y.push_back(member->source.y);
      z.push_back(member->source.z);
      mass.push_back(member->source.mass);
    }
  }
  std::size_t size() const { return x.size(); }
  double own(std::size_t i) const { return mass[i] / std::sqrt(softening2); }  // term of i in a sum over members
  double squared(std::uint32_t dx, std::uint32_t dy, std::uint32_t dz) const {
    const double u = static_cast<std::int32_t>(dx), v = static_cast<std::int32_t>(dy);
    const double w = static_cast<std::int32_t>(dz);
    return u * u + v * v + w * w + softening2;
  }
};

// The sum over all members except i.
double exact_potential(const Cluster& c, std::size_t i) {
  double sum = c.own(i);
  for (std::size_t j = 0; j < c.size(); ++j)
    sum -= c.mass[j] / std::sqrt(c.squared(c.x[j] - c.x[i], c.y[j] - c.y[i], c.z[j] - c.z[i]));
  return sum;
}

// The potentials of all members. The inner loop is over targets, so that it vectorises while each sum keeps its order.
std::vector<double> exact_potentials(const Cluster& c) {
  std::vector<double> potential(c.size());
  for (std::size_t i = 0; i < c.size(); ++i) potential[i] = c.own(i);
  for (std::size_t j = 0; j < c.size(); ++j) {
    const double mass = c.mass[j];
    for (std::size_t i = 0; i < c.size(); ++i)
      potential[i] -= mass / std::sqrt(c.squared(c.x[j] - c.x[i], c.y[j] - c.y[i], c.z[j] - c.z[i]));
  }
  return potential;
}

// Index of the first minimum; members are in the order of IDs.
std::size_t least(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::min_element(values.begin(), values.end()) - values.begin());
}

// A tree of one group's members, in Morton order; `order`: their places in the order of IDs.
struct ClusterTree {
  HostTree cells;
  std::vector<CellMoments> moments;
  std::vector<SourceParticle> sorted;
  std::vector<std::uint32_t> order;
};

ClusterTree plant(const Stream& stream, const Cluster& c) {
  ClusterTree tree;
  std::vector<std::uint64_t> keys(c.size());
  for (std::size_t i = 0; i < c.size(); ++i) keys[i] = morton_key(c.x[i], c.y[i], c.z[i]);
  tree.order.resize(c.size());
  std::iota(tree.order.begin(), tree.order.end(), 0u);
  std::stable_sort(tree.order.begin(), tree.order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  std::sort(keys.begin(), keys.end());
  for (const std::uint32_t i : tree.order)
    tree.sorted.push_back({c.x[i], c.y[i], c.z[i], static_cast<float>(c.mass[i])});
  DeviceBuffer<std::uint64_t> device_keys("groups.keys");
  DeviceBuffer<SourceParticle> source("groups.members");
  DeviceBuffer<CellBox> boxes("groups.boxes");
  Octree octree;
  device_keys.upload(stream, keys);
  source.upload(stream, tree.sorted);
  build_octree(stream, device_keys, kLeafSize, 0, octree);
  sweep_octree(stream, source.data(), octree);
  make_cell_boxes(stream, source.data(), octree, boxes);
  tree.cells = download_tree(stream, octree, boxes);
  tree.moments = octree.moments.download(stream);
  return tree;
}

double largest_extent(const CellBox& box) {
  return std::max({box.high[0] - box.low[0], box.high[1] - box.low[1], box.high[2] - box.low[2]});
}

double tree_potential(const Cluster& c, const ClusterTree& tree, std::size_t i) {
  std::uint32_t stack[8 * (kMortonLevels + 1)];
  std::size_t depth = 0;
  double sum = c.own(i);
  stack[depth++] = 0;
  while (depth > 0) {
    const std::uint32_t cell = stack[--depth];
    const CellMoments& m = tree.moments[cell];
    const double squared = c.squared(m.x - c.x[i], m.y - c.y[i], m.z - c.z[i]);
    const double extent = largest_extent(tree.cells.boxes[cell]);
    if (extent * extent < kOpening * kOpening * (squared - c.softening2)) {
      sum -= m.mass / std::sqrt(squared);
    } else if (tree.cells.child_count[cell] == 0) {
      const std::uint32_t first = tree.cells.first[cell];
      for (std::uint32_t k = first; k < first + tree.cells.count[cell]; ++k) {
        const SourceParticle& p = tree.sorted[k];
        sum -= p.mass / std::sqrt(c.squared(p.x - c.x[i], p.y - c.y[i], p.z - c.z[i]));
      }
    } else {
      for (std::uint32_t k = 0; k < tree.cells.child_count[cell]; ++k)
        stack[depth++] = tree.cells.first_child[cell] + k;
    }
  }
  return sum;
}

// Potentials by a tree, those of the deepest members by exact sums.
std::vector<double> tree_potentials(const Stream& stream, const Cluster& c, std::size_t& deepest) {
  const ClusterTree tree = plant(stream, c);
  std::vector<double> potential(c.size());
#pragma omp parallel for schedule(dynamic, 64)
  for (std::size_t k = 0; k < c.size(); ++k) {
    const std::size_t i = tree.order[k];  // neighbours one after another
    potential[i] = tree_potential(c, tree, i);
  }
  std::vector<std::uint32_t> candidates(c.size());
  std::iota(candidates.begin(), candidates.end(), 0u);
  const auto last = candidates.begin() + static_cast<std::ptrdiff_t>(kExactCandidates);
  std::partial_sort(candidates.begin(), last, candidates.end(), [&](std::uint32_t a, std::uint32_t b) {
    return potential[a] != potential[b] ? potential[a] < potential[b] : a < b;
  });
  candidates.resize(kExactCandidates);
  std::sort(candidates.begin(), candidates.end());
  std::vector<double> exact(candidates.size());
#pragma omp parallel for
  for (std::size_t k = 0; k < candidates.size(); ++k) exact[k] = exact_potential(c, candidates[k]);
  for (std::size_t k = 0; k < candidates.size(); ++k) potential[candidates[k]] = exact[k];
  deepest = candidates[least(exact)];
  return potential;
}

// ---- spheres --------------------------------------------------------------------------------------------------------

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

GroupPotentials group_potentials(const Stream& stream, const GroupMembers& members, double softening) {
  GroupPotentials found{std::vector<const ParticleRecord*>(members.groups()),
                        std::vector<double>(members.particles.size())};
  const auto keep = [&](std::size_t group, std::size_t deepest, const std::vector<double>& potential) {
    found.deepest[group] = members.begin(group) + deepest;
    for (std::size_t i = 0; i < potential.size(); ++i)
      found.of_member[members.begins[group] + i] = potential[i] * kSideToUnits;
  };
  std::size_t large = 0;  // large groups come first, one after another
  for (; large < members.groups() && members.length(large) > kDirectLength; ++large) {
    std::size_t deepest = 0;
    const std::vector<double> potential = tree_potentials(stream, Cluster(members, large, softening), deepest);
    keep(large, deepest, potential);
  }
#pragma omp parallel for schedule(dynamic)
  for (std::size_t group = large; group < members.groups(); ++group) {
    const std::vector<double> potential = exact_potentials(Cluster(members, group, softening));
    keep(group, least(potential), potential);
  }
  return found;
}

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
  const std::size_t size = boxes.places.size();
  std::vector<std::vector<SphereQuery>> asked(size);
  std::vector<std::vector<std::size_t>> number(size);  // of the queries to each rank, in `queries`
  for (std::size_t q = 0; q < queries.size(); ++q)
    for (std::size_t r = 0; r < size; ++r) {
      if (!boxes.near(r, box_of(queries[q].centre), squared_units(queries[q].radius))) continue;
      asked[r].push_back(queries[q]);
      number[r].push_back(q);
    }
  std::vector<std::vector<std::uint64_t>> counts(size);
  std::vector<std::vector<ParticleRecord>> answers(size);
  const auto to_answer = exchange_all(ranks, std::move(asked));
  for (std::size_t r = 0; r < size; ++r) answer(own, to_answer[r], counts[r], answers[r]);
  counts = exchange_all(ranks, std::move(counts));
  answers = exchange_all(ranks, std::move(answers));
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
