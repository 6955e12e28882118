// Particles for the tests of mesh kernels.
#pragma once

#include <random>
#include <vector>

#include "kernels/mesh/mesh.hpp"
#include "tests/kernels/particles/sets.hpp"

namespace maki::test {

inline constexpr Assignment kClouds[] = {Assignment::kCic, Assignment::kTsc, Assignment::kPcs};

using Set = std::vector<SourceParticle>;

// Each axis within 2^-narrow of the side about the origin, so that what is narrow straddles the periodic edges.
inline Set cloud_of(std::size_t n, int narrow, bool equal_masses, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::lognormal_distribution<float> mass(0.0f, 1.5f);
  Set set(n);
  for (auto& p : set) {
    const auto any = [&] { return static_cast<std::uint32_t>(static_cast<std::int32_t>(random()) >> narrow); };
    p = {any(), any(), any(), 0.37f};
    if (!equal_masses) p.mass = mass(random);
  }
  return set;
}

// Sparse ones everywhere, a loose clump, and a tight one; in Morton order.
inline Set clustered(std::size_t n, bool equal_masses) {
  Set set = cloud_of(n / 4, 0, equal_masses, 2);
  const Set loose = cloud_of(n / 4, 3, equal_masses, 3), tight = cloud_of(n - n / 4 * 2, 12, equal_masses, 4);
  set.insert(set.end(), loose.begin(), loose.end());
  for (SourceParticle p : tight) {
    p.x += 0x5a000000u, p.y += 0x80000000u, p.z -= 0x12345u;
    set.push_back(p);
  }
  testing::sort_by_key(set);
  return set;
}

// As particles stand some steps after the last sort.
inline Set drifted(Set set, int cells) {
  std::mt19937 random(5);
  const auto reach = static_cast<std::uint32_t>(0x180000000 / static_cast<unsigned>(cells));  // 1.5 cells
  for (SourceParticle& p : set)
    for (std::uint32_t* c : {&p.x, &p.y, &p.z}) *c += static_cast<std::uint32_t>(random()) % (2 * reach) - reach;
  return set;
}

}  // namespace maki::test
