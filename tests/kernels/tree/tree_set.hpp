// A set of particles with its tree and groups, made by the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/particles/particles.hpp"
#include "kernels/particles/types.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"
#include "tests/kernels/particles/at_rest.hpp"
#include "tests/test_stream.hpp"

namespace maki::testing {

// Particle sets for the tests of tree, lists and forces: fixed point, reproducible.
inline std::uint32_t to_fixed(double fraction) {
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(std::llround(fraction * kSideToUnits)));
}

inline std::vector<SourceParticle> uniform_set(std::size_t n, unsigned seed, double low = 0, double high = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> u(low, high), mass(0.5, 1.5);
  std::vector<SourceParticle> set(n);
  for (auto& p : set)
    p = {to_fixed(u(random)), to_fixed(u(random)), to_fixed(u(random)),
         static_cast<float>(mass(random) / static_cast<double>(n))};
  return set;
}

// Clumps within clumps inside the middle half of the box.
inline std::vector<SourceParticle> clustered_set(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> u(0.32, 0.68);
  std::vector<SourceParticle> set(n);
  double centre[3] = {0.5, 0.5, 0.5};
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 64 == 0)
      for (double& c : centre) c = u(random);
    const double scale = 0.02 * std::pow(10.0, -3.0 * static_cast<double>(i % 64) / 64.0);
    double x[3];
    for (int a = 0; a < 3; ++a) x[a] = std::clamp(centre[a] + scale * normal(random), 0.26, 0.74);
    set[i] = {to_fixed(x[0]), to_fixed(x[1]), to_fixed(x[2]), 1.0f / static_cast<float>(n)};
  }
  return set;
}

// Plummer sphere of mass 1 about the box centre, scale length a, cut at 10 a or where it leaves the middle half.
inline std::vector<SourceParticle> plummer_set(std::size_t n, unsigned seed, double a = 0.02) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> u(0, 1);
  std::vector<SourceParticle> set(n);
  for (auto& p : set) {
    double r = 0;
    do r = a / std::sqrt(std::pow(u(random), -2.0 / 3.0) - 1);
    while (r > std::min(10 * a, 0.24));
    const double cosine = 2 * u(random) - 1, phi = 2 * M_PI * u(random), sine = std::sqrt(1 - cosine * cosine);
    p = {to_fixed(0.5 + r * sine * std::cos(phi)), to_fixed(0.5 + r * sine * std::sin(phi)), to_fixed(0.5 + r * cosine),
         1.0f / static_cast<float>(n)};
  }
  return set;
}

struct TreeSet {
  const Stream& stream = test::test_stream();
  Particles particles;
  MortonSorter sorter;
  Octree tree;
  DeviceBuffer<Group> groups{"groups"};

  TreeSet(const std::vector<SourceParticle>& set, std::uint32_t group_size, int min_level,
          std::uint32_t leaf_size = 8) {
    upload_at_rest(stream, set, particles);
    sorter.sort(stream, particles, nullptr);
    build_octree(stream, sorter.keys(), leaf_size, min_level, tree);
    sweep_octree(stream, particles.source.data(), tree);
    make_groups(stream, tree, particles.source.data(), group_size, min_level, groups);
  }
  // For walks by estimated error (WalkOptions::rms_acceleration): error lengths, and an error scale for each group.
  void know_errors() {
    tree.geometry.has_error_lengths = true;
    tree.geometry.resize(tree.cells);
    sweep_octree(stream, particles.source.data(), tree);
    auto scaled = groups.download(stream);
    for (std::size_t i = 0; i < scaled.size(); ++i)
      scaled[i].error_scale = kLeastErrorScale + (kMostErrorScale - kLeastErrorScale) * static_cast<float>(i % 8) / 7;
    groups.upload(stream, scaled);
  }
  std::uint32_t group_count() const { return static_cast<std::uint32_t>(groups.size()); }
  WalkRequest all_groups() const { return {groups.data(), group_count(), nullptr, 0, group_count(), false}; }
  ListView view(const InteractionLists& lists) const {
    return {groups.data(), lists.ranges.data(), lists.words.data(), nullptr, group_count()};
  }
};

// A group's words, in the order in which they stand.
struct ListWords {
  std::vector<std::uint32_t> cells, leaves;
  bool operator==(const ListWords&) const = default;
};

inline std::vector<ListWords> words_of(const Stream& stream, const InteractionLists& lists) {
  const auto ranges = lists.ranges.download(stream);
  const auto words = lists.words.download(stream);
  std::vector<ListWords> out;
  for (const ListRange& r : ranges) {
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(r.begin);
    out.push_back({{begin, begin + r.cells}, {begin + r.cells, begin + r.cells + r.leaves}});
  }
  return out;
}

}  // namespace maki::testing
