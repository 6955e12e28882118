// Reproducible sets of particles.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/particles/particles.hpp"
#include "kernels/particles/types.hpp"

namespace maki::testing {

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

// Anywhere in the box.
inline std::vector<SourceParticle> random_set(std::size_t n, unsigned seed, float mass) {
  std::mt19937 random(seed);
  const auto any = [&] { return static_cast<std::uint32_t>(random()); };
  std::vector<SourceParticle> set(n);
  for (auto& p : set) p = {any(), any(), any(), mass};
  return set;
}

// Half of them anywhere, half in a clump that straddles the edges of the box; masses equal or log-normal.
inline std::vector<SourceParticle> clumped_set(std::size_t n, unsigned seed, bool equal_masses) {
  std::mt19937 random(seed);
  std::lognormal_distribution<float> mass(0.0f, 1.5f);
  std::vector<SourceParticle> set(n);
  for (std::size_t i = 0; i < n; ++i) {
    const int narrow = i % 2 ? 5 : 0;
    const auto any = [&] { return static_cast<std::uint32_t>(static_cast<std::int32_t>(random()) >> narrow); };
    set[i] = {any(), any(), any(), equal_masses ? 0.37f : mass(random)};
  }
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

template <class T>
void upload_vectors(const Stream& stream, const std::vector<std::array<T, 3>>& from, VectorArray& to) {
  DeviceBuffer<float>* const axes[3] = {&to.x, &to.y, &to.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::vector<float> component;
    for (const auto& v : from) component.push_back(static_cast<float>(v[axis]));
    axes[axis]->upload(stream, component);
    stream.synchronize();
  }
}

// As MortonSorter leaves them: by their keys alone.
inline void sort_by_key(std::vector<SourceParticle>& set) {
  std::ranges::stable_sort(set, {}, [](const SourceParticle& p) { return morton_key(p.x, p.y, p.z); });
}

}  // namespace maki::testing
