// Sets of points to divide, and what a division is to be.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "host/domain/multisection.hpp"

namespace maki::test {

inline constexpr std::uint64_t kSide = std::uint64_t{1} << 32;
inline constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();

inline std::vector<SamplePoint> uniform_set(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<SamplePoint> points(n);
  for (SamplePoint& p : points)
    for (std::uint32_t& c : p) c = random();
  return points;
}

// Clumps of log-normal masses and small sizes over the box.
inline std::vector<SamplePoint> clustered_set(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> richness(0, 1.5);
  std::normal_distribution<double> offset(0, 3e7);
  std::vector<double> mass(40);
  for (double& m : mass) m = richness(random);
  std::discrete_distribution<std::size_t> clump(mass.begin(), mass.end());
  const std::vector<SamplePoint> centres = uniform_set(mass.size(), seed + 1);
  std::vector<SamplePoint> points(n);
  for (SamplePoint& p : points) {
    const SamplePoint& centre = centres[clump(random)];
    for (std::size_t a = 0; a < 3; ++a) p[a] = centre[a] + static_cast<std::uint32_t>(std::lround(offset(random)));
  }
  return points;
}

inline DomainBox box_of(const Domains& domains, int rank) {
  const Factors f = domains.factors();
  const auto r = static_cast<std::uint32_t>(rank);
  const std::uint32_t column = r / f.z, slab = column / f.y;
  const std::uint32_t parent[3] = {0, slab, column};
  const std::uint32_t place[3] = {slab, column % f.y, r % f.z};
  DomainBox box;
  for (int a = 0; a < 3; ++a) {
    const auto i = static_cast<std::size_t>(a);
    const std::span<const std::uint32_t> starts = domains.axis(a, parent[i]);
    box.low[i] = starts[place[i]];
    box.high[i] = place[i] + 1 < starts.size() ? starts[place[i] + 1] : kSide;
  }
  return box;
}

// Weight of the samples in each domain.
inline std::vector<double> weight_of_domains(const Domains& domains, std::span<const SamplePoint> samples,
                                             std::span<const float> weights) {
  std::vector<double> sums(static_cast<std::size_t>(domains.count()));
  for (std::size_t i = 0; i < samples.size(); ++i)
    sums[domains.rank_of(samples[i][0], samples[i][1], samples[i][2])] += weights.empty() ? 1.0 : weights[i];
  return sums;
}

inline std::uint32_t rank_of(const Domains& domains, const SamplePoint& p) { return domains.rank_of(p[0], p[1], p[2]); }

// By the boxes alone.
inline std::vector<int> owners(const Domains& domains, const SamplePoint& p) {
  std::vector<int> found;
  for (int r = 0; r < domains.count(); ++r) {
    const DomainBox box = box_of(domains, r);
    bool inside = true;
    for (std::size_t a = 0; a < 3; ++a) inside = inside && box.low[a] <= p[a] && p[a] < box.high[a];
    if (inside) found.push_back(r);
  }
  return found;
}

// Positions at all cuts, just below them, at the ends of the box, and anywhere.
inline std::vector<SamplePoint> places_to_check(const Domains& domains) {
  std::vector<SamplePoint> places = uniform_set(300, 9);
  std::mt19937 random(10);
  for (int r = 0; r < domains.count(); ++r) {
    const DomainBox box = box_of(domains, r);
    for (int k = 0; k < 8; ++k) {
      SamplePoint p;
      for (std::size_t a = 0; a < 3; ++a) {
        const std::uint32_t edge[4] = {box.low[a], box.low[a] - 1, static_cast<std::uint32_t>(box.high[a]),
                                       static_cast<std::uint32_t>(box.high[a] - 1)};
        p[a] = edge[random() % 4];
      }
      places.push_back(p);
    }
  }
  places.insert(places.end(), {{0, 0, 0}, {kLast, kLast, kLast}, {0, kLast, 0}});
  return places;
}

inline void expect_a_partition(const Domains& domains) {
  for (const SamplePoint& p : places_to_check(domains)) {
    const std::vector<int> found = owners(domains, p);
    ASSERT_EQ(found.size(), 1u) << p[0] << ' ' << p[1] << ' ' << p[2];
    EXPECT_EQ(static_cast<int>(rank_of(domains, p)), found[0]);
  }
  unsigned __int128 volume = 0;
  for (int r = 0; r < domains.count(); ++r) {
    const DomainBox box = box_of(domains, r);
    unsigned __int128 v = 1;
    for (std::size_t a = 0; a < 3; ++a) {
      ASSERT_LE(box.low[a], box.high[a]);
      v *= box.high[a] - box.low[a];
    }
    volume += v;
  }
  EXPECT_TRUE(volume == static_cast<unsigned __int128>(1) << 96);
}

}  // namespace maki::test
