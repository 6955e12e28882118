#include "kernels/particles/particles.hpp"
#include "tests/test_stream.hpp"

#include <gtest/gtest.h>

namespace maki {
namespace {

TEST(Escapers, LeaveTheSetAndTheOthersKeepTheirOrder) {
  const Stream& stream = test::test_stream();
  Particles particles;
  upload_particles(stream, particles, {{0.5, 0.5, 0.5}, {0.80, 0.5, 0.5}, {0.3, 0.3, 0.74}, {0.5, 0.2, 0.5}},
                   {{1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {4, 0, 0}}, {1, 2, 3, 4}, {10, 20, 30, 40});
  const HostParticles out = set_aside(stream, particles, std::int64_t{1} << 30);
  EXPECT_EQ(out.ids, (std::vector<std::uint64_t>{20, 40}));
  EXPECT_NEAR(out.fractions[0][0], 0.8, 1e-9);
  EXPECT_EQ(out.momenta[1][0], 4);
  const HostParticles in = download_particles(stream, particles);
  EXPECT_EQ(in.ids, (std::vector<std::uint64_t>{10, 30}));
  EXPECT_EQ(in.masses, (std::vector<float>{1, 3}));
  EXPECT_EQ(particles.momentum.size(), 2u);
  EXPECT_EQ(particles.remainder.size(), 2u);
}

TEST(Escapers, MayBeNoneOrAll) {
  const Stream& stream = test::test_stream();
  Particles particles;
  upload_particles(stream, particles, {{0.6, 0.5, 0.5}}, {{1, 0, 0}}, {1}, {10});
  EXPECT_EQ(set_aside(stream, particles, std::int64_t{1} << 30).ids.size(), 0u);
  EXPECT_EQ(particles.size(), 1u);
  EXPECT_EQ(set_aside(stream, particles, 1000).ids.size(), 1u);
  EXPECT_EQ(particles.size(), 0u);
}

}  // namespace
}  // namespace maki
