// MassCounter against the plain loop, bit for bit; on the GPU in tiles.
#include <gtest/gtest.h>

#include "kernels/device/buffer.hpp"
#include "kernels/mesh/assign.hpp"
#include "tests/kernels/mesh/mesh_sets.hpp"
#include "tests/on_device.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using namespace test;

constexpr std::size_t kMoreThanAChunk = 2048 + 700;  // particles of a block (kernels/mesh/chunk_tiles.cuh)

void expect_exact(Assignment cloud, int m, const Set& set) {
  const Stream& stream = test_stream();
  const OnDevice source(set);
  const MassUnit unit = choose_mass_unit(stream, cloud, m, source.data(), set.size());
  EXPECT_EQ(unit.shed_bits, 0);
  for (const bool shifted : {false, true}) {
    SCOPED_TRACE(::testing::Message() << m << " cells, cloud " << static_cast<int>(cloud) << ", shifted " << shifted
                                      << ", " << set.size() << " particles");
    const auto expected = counts_by_the_book(cloud, set, m, shifted ? 1 : 0, unit);
    DeviceBuffer<std::uint64_t> counts("test.counts", expected.size());
    MassCounter counter(cloud);
    counter.take(stream, source.data(), set.size(), unit, MeshBox::whole(m));
    counter.count(stream, shifted, counts.data());
    const auto got = counts.download(stream);
    long wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) wrong += static_cast<std::int64_t>(got[i]) != expected[i];
    EXPECT_EQ(wrong, 0) << "of " << expected.size() << " cells";
  }
}

// More than one chunk; tiles begin and end within them.
TEST(MassCounter, TakesChunksOfDenseParticles) {
  Set set = cloud_of(kMoreThanAChunk, 2, true);
  testing::sort_by_key(set);
  expect_exact(Assignment::kPcs, 64, set);
  expect_exact(Assignment::kPcs, 16, drifted(set, 16));
}

TEST(MassCounter, TakesParticlesInAnyOrder) {
  for (Assignment cloud : kClouds) {
    expect_exact(cloud, 46, cloud_of(500, 0, false));
    expect_exact(cloud, 46, cloud_of(300, 4, true));
    expect_exact(cloud, 46, drifted(clustered(500, true), 46));
  }
}

// A box that holds the clouds of all particles, around the edge of the mesh, and nothing beyond it.
TEST(MassCounter, AddsToABoxOfTheMesh) {
  const int m = 46;
  for (Assignment cloud : kClouds) {
    const CloudReach reach = cloud_reach(cloud, true);
    const int extent = 12 + reach.below + reach.above;
    const MeshBox held{m, {m - 6 - reach.below, m - 6 - reach.below, 0}, {extent, extent, m}};
    Set set = cloud_of(400, 3, false);  // within 1/16 of the side, 2.9 cells, of the origin
    for (SourceParticle& p : set) p.x += 0x05000000u, p.y -= 0x05000000u;
    set.push_back({0xfff00000u, 5u, 0x80000000u, 1.0f});
    testing::sort_by_key(set);
    const OnDevice source(set);
    const MassUnit unit = choose_mass_unit(test_stream(), cloud, m, source.data(), set.size());
    const auto counts = counts_of(set, unit, cloud, held);
    for (bool shifted : {false, true}) {
      const auto& got = counts[shifted];
      const auto whole = counts_by_the_book(cloud, set, m, shifted ? 1 : 0, unit);
      long wrong = 0;
      std::int64_t inside = 0, all = 0;
      std::size_t i = 0;
      for (int x = 0; x < extent; ++x)
        for (int y = 0; y < extent; ++y)
          for (int z = 0; z < m; ++z, ++i) {
            const std::int64_t book =
                whole[static_cast<std::size_t>(((held.origin[0] + x) % m * m + (held.origin[1] + y) % m) * m + z)];
            wrong += static_cast<std::int64_t>(got[i]) != book;
            inside += book;
          }
      for (std::int64_t book : whole) all += book;
      EXPECT_EQ(wrong, 0);
      EXPECT_EQ(inside, all);
    }
  }
}

TEST(MassCounter, TakesFewParticlesAndNone) {
  for (Assignment cloud : kClouds)
    for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{31}, std::size_t{65}})
      expect_exact(cloud, 16, cloud_of(n, 1, n == 2));
}

}  // namespace
}  // namespace maki
