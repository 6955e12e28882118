// Particles for the tests of mesh kernels, and mass assignment as it is defined, one particle after another.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/cloud.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/mesh.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/on_device.hpp"

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

template <int S>
void add_by_the_book(const SourceParticle& p, int m, std::uint32_t half_cells, const MassUnit& unit,
                     std::vector<std::int64_t>& counts) {
  const std::uint32_t c[3] = {p.x, p.y, p.z};
  std::uint32_t w[3][S], share[S], in_row[S];
  int first[3];
  for (int a = 0; a < 3; ++a) {
    const MeshPosition u = mesh_position<S>(c[a], static_cast<std::uint32_t>(m), half_cells);
    first[a] = u.first + m;
    integer_weights<S>(u.fraction, unit.bits, w[a]);
  }
  split_units<S>(units_of(p.mass, unit.equal_units, unit.units_per_mass), unit.bits, w[0], share);
  for (int i = 0; i < S; ++i) {
    split_units<S>(share[i], unit.bits, w[1], in_row);
    for (int j = 0; j < S; ++j) {
      std::int64_t* row = &counts[((first[0] + i) % m * m + (first[1] + j) % m) * m];
      for (int k = 0; k < S; ++k) {
        const std::uint64_t share = std::uint64_t{in_row[j]} * w[2][k], step = std::uint64_t{1} << unit.shed_bits;
        row[(first[2] + k) % m] += static_cast<std::int64_t>((share + step / 2) / step * step);
      }
    }
  }
}

inline std::vector<std::int64_t> counts_by_the_book(Assignment cloud, const std::vector<SourceParticle>& particles,
                                                    int m, std::uint32_t half_cells, const MassUnit& unit) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(m) * m * m);
  for (const SourceParticle& p : particles) {
    if (cloud == Assignment::kCic) add_by_the_book<2>(p, m, half_cells, unit, counts);
    if (cloud == Assignment::kTsc) add_by_the_book<3>(p, m, half_cells, unit, counts);
    if (cloud == Assignment::kPcs) add_by_the_book<4>(p, m, half_cells, unit, counts);
  }
  return counts;
}

// What MassCounter counts of a set within a box of the mesh's cells; with two meshes also on the shifted one.
inline std::array<std::vector<std::uint64_t>, 2> counts_of(const Set& set, const MassUnit& unit, Assignment cloud,
                                                           const MeshBox& box, int meshes = 2) {
  const OnDevice source(set);
  MassCounter counter(cloud);
  counter.take(test_stream(), source.data(), source.size(), unit, box);
  std::array<std::vector<std::uint64_t>, 2> counts;
  for (std::size_t mesh = 0; mesh < static_cast<std::size_t>(meshes); ++mesh) {
    DeviceBuffer<std::uint64_t> cells("test.counts", box.size());
    counter.count(test_stream(), mesh == 1, cells.data());
    counts[mesh] = cells.download(test_stream());
  }
  return counts;
}

}  // namespace maki::test
