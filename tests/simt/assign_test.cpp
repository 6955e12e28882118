// Tiled mass assignment (kernels/mesh/assign_cuda.cuh) against its CPU twin and the plain loop, bit for bit.
#include "kernels/mesh/assign_cuda.cuh"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/count_masses.hpp"
#include "tests/kernels/mesh/plain_counts.hpp"
#include "tests/simt/mesh_sets.hpp"

namespace maki {
namespace {

using namespace test;

struct Assigned {
  MassUnit unit;
  std::vector<std::int64_t> counts;
};

Assigned assign(Assignment cloud, int m, const Set& set, std::uint32_t half_cells, int mass_bits = 0) {
  const Stream stream;
  DeviceBuffer<SourceParticle> source("test.source");
  source.upload(stream, set);
  DeviceBuffer<cuda::Count> counts("test.counts", static_cast<std::size_t>(m) * m * m);
  counts.fill_zero(stream);
  Assigned out;
  out.unit = choose_mass_unit(stream, cloud, m, source.data(), set.size(), mass_bits);
  cuda::assign_counts(stream, source.data(), set.size(), out.unit, CellBox::whole(m), cloud, half_cells, counts.data());
  for (cuda::Count c : counts.download(stream)) out.counts.push_back(static_cast<std::int64_t>(c));
  return out;
}

void expect_exact(Assignment cloud, int m, const Set& set, int mass_bits = 0) {
  for (std::uint32_t half_cells : {0u, 1u}) {
    SCOPED_TRACE(testing::Message() << m << " cells, cloud " << static_cast<int>(cloud) << ", half " << half_cells
                                    << ", " << set.size() << " particles");
    const Assigned got = assign(cloud, m, set, half_cells, mass_bits);
    EXPECT_EQ(got.unit.shed_bits > 0, mass_bits > 0);
    const auto expected = counts_by_the_book(cloud, set, m, half_cells, got.unit);
    long wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) wrong += got.counts[i] != expected[i];
    EXPECT_EQ(wrong, 0) << "of " << expected.size() << " cells";
  }
}

TEST(TiledAssignment, GivesTheCountsOfThePlainLoop) {
  for (Assignment cloud : kClouds)
    for (bool equal : {true, false})
      for (int m : {8, 16, 46}) {
        expect_exact(cloud, m, clustered(600, equal));
        Set even = cloud_of(400, 0, equal);
        sort_by_key(even);
        expect_exact(cloud, m, even);
      }
}

TEST(TiledAssignment, RoundsWhatParticlesGive) {
  for (Assignment cloud : kClouds)
    for (bool equal : {true, false}) expect_exact(cloud, 16, clustered(600, equal), 9);
}

TEST(TiledAssignment, GivesTheMeshesOfTheCpu) {
  const int m = 30;
  const Stream stream;
  const Set set = clustered(900, false);
  DeviceBuffer<SourceParticle> source("test.source");
  source.upload(stream, set);
  const std::size_t size = static_cast<std::size_t>(m) * m * (m + 2);
  DeviceBuffer<float> mesh("test.mesh", size), shifted("test.shifted", size);
  MassAssigner assigner(m, Assignment::kPcs);
  assigner.assign(stream, source.data(), set.size(), mesh.data(), shifted.data());
  for (std::uint32_t half_cells : {0u, 1u}) {
    const Assigned got = assign(Assignment::kPcs, m, set, half_cells);
    const std::vector<float> expected = (half_cells ? shifted : mesh).download(stream);
    long wrong = 0;
    for (int row = 0; row < m * m; ++row)
      for (int z = 0; z < m; ++z)
        wrong += expected[static_cast<std::size_t>(row * (m + 2) + z)] !=
                 static_cast<float>(got.counts[static_cast<std::size_t>(row * m + z)] - got.unit.mean) *
                     static_cast<float>(got.unit.quantum);
    EXPECT_EQ(wrong, 0);
  }
}

// More than one chunk; tiles begin and end within them.
TEST(TiledAssignment, TakesChunksOfDenseParticles) {
  Set set = cloud_of(cuda::kChunk + 700, 2, true);
  sort_by_key(set);
  expect_exact(Assignment::kPcs, 64, set);
  expect_exact(Assignment::kPcs, 16, drifted(set, 16));
}

TEST(TiledAssignment, TakesParticlesInAnyOrder) {
  for (Assignment cloud : kClouds) {
    expect_exact(cloud, 46, cloud_of(500, 0, false));
    expect_exact(cloud, 46, cloud_of(300, 4, true));
    expect_exact(cloud, 46, drifted(clustered(500, true), 46));
  }
}

// A box that holds the clouds of all particles, around the edge of the mesh, and nothing beyond it.
TEST(TiledAssignment, AddsToABoxOfTheMesh) {
  const int m = 46;
  const Stream stream;
  for (Assignment cloud : kClouds) {
    const CloudReach reach = cloud_reach(cloud, true);
    const int extent = 12 + reach.below + reach.above;
    const CellBox held{m, {m - 6 - reach.below, m - 6 - reach.below, 0}, {extent, extent, m}};
    Set set = cloud_of(400, 3, false);  // within 1/16 of the side, 2.9 cells, of the origin
    for (SourceParticle& p : set) p.x += 0x05000000u, p.y -= 0x05000000u;
    set.push_back({0xfff00000u, 5u, 0x80000000u, 1.0f});
    sort_by_key(set);
    DeviceBuffer<SourceParticle> source("test.source");
    source.upload(stream, set);
    const MassUnit unit = choose_mass_unit(stream, cloud, m, source.data(), set.size());
    MassCounter counter(cloud);
    counter.take(stream, source.data(), set.size(), unit, held);
    for (bool shifted : {false, true}) {
      DeviceBuffer<cuda::Count> counts("test.counts", held.size());
      counts.fill_zero(stream);
      cuda::assign_counts(stream, source.data(), set.size(), unit, held, cloud, shifted ? 1 : 0, counts.data());
      const auto got = counts.download(stream);
      const auto whole = counts_by_the_book(cloud, set, m, shifted ? 1 : 0, unit);
      DeviceBuffer<std::uint64_t> twin("test.twin", held.size());
      counter.count(stream, shifted, twin.data());
      const auto its = twin.download(stream);
      long wrong = 0, inside = 0, all = 0;
      std::size_t i = 0;
      for (int x = 0; x < extent; ++x)
        for (int y = 0; y < extent; ++y)
          for (int z = 0; z < m; ++z, ++i) {
            const std::int64_t book =
                whole[static_cast<std::size_t>(((held.origin[0] + x) % m * m + (held.origin[1] + y) % m) * m + z)];
            wrong += static_cast<std::int64_t>(got[i]) != book || static_cast<std::int64_t>(its[i]) != book;
            inside += book;
          }
      for (std::int64_t book : whole) all += book;
      EXPECT_EQ(wrong, 0);
      EXPECT_EQ(inside, all);
    }
  }
}

// The largest sums, with carries from the lower word.
TEST(TiledAssignment, HoldsAllParticlesInOnePlace) {
  for (Assignment cloud : kClouds) {
    expect_exact(cloud, 8, Set(600, {0x7fffffffu, 5u, 0xffffff00u, 2.5f}));
    expect_exact(cloud, 46, Set(600, {0u, 0u, 0u, 1.0f}));
  }
  expect_exact(Assignment::kCic, 46, Set(cuda::kChunk, {0x80000000u, 0u, 0u, 1.0f}));
}

TEST(TiledAssignment, TakesFewParticlesAndNone) {
  for (Assignment cloud : kClouds)
    for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{31}, std::size_t{65}})
      expect_exact(cloud, 16, cloud_of(n, 1, n == 2));
}

TEST(TiledAssignment, DoesNotDependOnTheOrderOfThreads) {
  const Set set = drifted(clustered(400, false), 24);
  std::vector<std::int64_t> first;
  simt::for_seeds(20, [&](std::uint64_t seed) {
    const Assigned got = assign(Assignment::kPcs, 24, set, seed % 2 == 0);
    if (seed % 2) {
      if (first.empty()) first = got.counts;
      EXPECT_EQ(first, got.counts) << "seed " << seed;
    } else {
      EXPECT_EQ(got.counts, counts_by_the_book(Assignment::kPcs, set, 24, 1, got.unit)) << "seed " << seed;
    }
  });
}

}  // namespace
}  // namespace maki
