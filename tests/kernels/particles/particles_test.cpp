#include "kernels/particles/particles.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/error.hpp"
#include "tests/test_stream.hpp"

namespace maki {

namespace {

constexpr double kUnit = 1 / kSideToUnits;

Particles make_one(const Stream& stream, std::array<double, 3> fraction, std::array<float, 3> momentum) {
  Particles particles;
  upload_particles(stream, particles, {fraction}, {momentum}, {2.5f}, {42});
  return particles;
}

TEST(Particles, UploadAndDownloadGiveTheSame) {
  const Stream& stream = test::test_stream();
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<std::array<double, 3>> fractions(1000);
  std::vector<std::array<float, 3>> momenta(1000);
  std::vector<float> masses(1000);
  std::vector<std::uint64_t> ids(1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    for (double& f : fractions[i]) f = uniform(random);
    for (float& p : momenta[i]) p = static_cast<float>(uniform(random));
    masses[i] = static_cast<float>(uniform(random));
    ids[i] = random();
  }
  Particles particles;
  upload_particles(stream, particles, fractions, momenta, masses, ids);
  EXPECT_EQ(particles.size(), 1000u);
  const HostParticles host = download_particles(stream, particles);
  EXPECT_EQ(host.momenta, momenta);
  EXPECT_EQ(host.masses, masses);
  EXPECT_EQ(host.ids, ids);
  for (std::size_t i = 0; i < 1000; ++i)
    for (std::size_t axis = 0; axis < 3; ++axis)
      EXPECT_NEAR(host.fractions[i][axis], fractions[i][axis], kUnit / 65536);
}

TEST(Particles, ArraysOfDifferentLengthAreRefused) {
  const Stream& stream = test::test_stream();
  Particles particles;
  EXPECT_THROW(upload_particles(stream, particles, {{0, 0, 0}}, {}, {1.0f}, {1}), Error);
}

TEST(Drift, KeepsMotionsBelowTheLastBit) {
  const Stream& stream = test::test_stream();
  // 1/65536 of a unit a drift, in x forwards and in y backwards: one unit after 65536 drifts.
  Particles particles = make_one(stream, {0.25, 0.25, 0.25}, {1, -1, 0});
  for (int i = 0; i < 65535; ++i) drift(stream, particles, kUnit / 65536);
  EXPECT_EQ(particles.source.download(stream)[0].x, 1u << 30);
  drift(stream, particles, kUnit / 65536);
  EXPECT_EQ(particles.source.download(stream)[0].x, (1u << 30) + 1);
  EXPECT_EQ(particles.source.download(stream)[0].y, (1u << 30) - 1);
  EXPECT_EQ(particles.source.download(stream)[0].z, 1u << 30);
}

TEST(Drift, WrapsAroundTheBox) {
  const Stream& stream = test::test_stream();
  Particles particles = make_one(stream, {0.9, 0.1, 0.5}, {0.25f, -0.25f, 2});
  drift(stream, particles, 1);
  const HostParticles host = download_particles(stream, particles);
  EXPECT_NEAR(host.fractions[0][0], 0.15, 1e-9);
  EXPECT_NEAR(host.fractions[0][1], 0.85, 1e-9);
  EXPECT_NEAR(host.fractions[0][2], 0.5, 1e-9);
  EXPECT_EQ(host.ids[0], 42u);
  EXPECT_EQ(host.masses[0], 2.5f);
}

TEST(Drift, ThereAndBackIsExact) {
  const Stream& stream = test::test_stream();
  Particles particles = make_one(stream, {0.123456789, 0.987654321, 0.5}, {0.317f, -0.7123f, 1.9f});
  const HostParticles before = download_particles(stream, particles);
  drift(stream, particles, 0.7);
  drift(stream, particles, -0.7);
  EXPECT_EQ(download_particles(stream, particles).fractions, before.fractions);
}

TEST(Kick, AddsAccelerationTimesFactor) {
  const Stream& stream = test::test_stream();
  Particles particles = make_one(stream, {0.5, 0.5, 0.5}, {1, 2, 3});
  VectorArray acceleration("test.acceleration");
  acceleration.x.upload(stream, {10.0f});
  acceleration.y.upload(stream, {20.0f});
  acceleration.z.upload(stream, {-30.0f});
  kick(stream, particles, acceleration, 0.5);
  const HostParticles host = download_particles(stream, particles);
  EXPECT_EQ(host.momenta[0], (std::array<float, 3>{6, 12, -12}));
}

TEST(DoubleBox, HalvesDistancesAboutTheMiddle) {
  const Stream& stream = test::test_stream();
  Particles particles = make_one(stream, {0.25, 0.75, 0.5}, {1, 2, 3});
  double_box(stream, particles);
  HostParticles host = download_particles(stream, particles);
  EXPECT_DOUBLE_EQ(host.fractions[0][0], 0.375);
  EXPECT_DOUBLE_EQ(host.fractions[0][1], 0.625);
  EXPECT_DOUBLE_EQ(host.fractions[0][2], 0.5);
  EXPECT_EQ(host.momenta[0], (std::array<float, 3>{1, 2, 3}));
  // Below the last bit too.
  particles = make_one(stream, {0.25 + 3 * kUnit / 65536 * 2, 0.3, 0.3}, {0, 0, 0});
  double_box(stream, particles);
  EXPECT_DOUBLE_EQ(download_particles(stream, particles).fractions[0][0], 0.375 + 3 * kUnit / 65536);
}

}  // namespace

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
