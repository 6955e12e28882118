#include "kernels/measure/projection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/device/buffer.hpp"
#include "kernels/error.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

std::uint32_t at(double f) { return static_cast<std::uint32_t>(static_cast<std::int64_t>(f * kSideToUnits)); }

std::vector<double> picture(const std::vector<SourceParticle>& particles, const ProjectionOptions& options) {
  const Stream& stream = test::test_stream();
  DeviceBuffer<SourceParticle> source("test.source");
  source.upload(stream, particles);
  return project_density(stream, source.data(), particles.size(), options);
}

double total(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(Projection, PutsAParticleIntoItsPixel) {
  const std::vector<SourceParticle> one = {{at(0.34375), at(0.71875), at(0.09375), 3.0f}};  // middles of sixteenths
  const int across[3][2] = {{11, 1}, {5, 1}, {5, 11}};  // pixel (first axis, second axis) by line of sight, of 16
  for (int axis = 0; axis < 3; ++axis) {
    ProjectionOptions options;
    options.axis = axis;
    options.width = 16;
    options.height = 32;
    const auto d = picture(one, options);
    ASSERT_EQ(d.size(), 16u * 32u);
    EXPECT_NEAR(total(d) / (16 * 32), 3.0, 1e-5);
    const auto brightest = std::max_element(d.begin(), d.end()) - d.begin();
    EXPECT_EQ(brightest % 16, across[axis][0]) << axis;
    EXPECT_EQ(brightest / 32, across[axis][1]) << axis;
  }
}

TEST(Projection, CutsASlabAndAWindow) {
  std::mt19937 random(9);
  std::vector<SourceParticle> particles;
  for (int i = 0; i < 200000; ++i) {
    const auto any = [&] { return static_cast<std::uint32_t>(random()); };
    particles.push_back({any(), any(), any(), 1.0f / 200000});
  }
  ProjectionOptions options;
  options.width = options.height = 8;
  const auto whole = picture(particles, options);
  EXPECT_NEAR(total(whole) / 64, 1.0, 1e-6);
  for (double d : whole) EXPECT_NEAR(d, 1.0, 0.1);
  options.front = 0.9;  // around the edge of the box
  options.depth = 0.25;
  EXPECT_NEAR(total(picture(particles, options)) / 64, 0.25, 0.01);
  options = {};
  options.width = options.height = 8;
  options.left = 0.25;
  options.bottom = 0.5;
  options.extent = 0.25;
  const auto window = picture(particles, options);
  EXPECT_NEAR(window[3 * 8 + 4], 1.0, 0.2);
  EXPECT_LT(total(window) / 64, 1.05);
}

TEST(Projection, WrapsAndDoesNotDependOnOrder) {
  std::mt19937 random(2);
  std::vector<SourceParticle> particles;
  for (int i = 0; i < 5000; ++i)
    particles.push_back({static_cast<std::uint32_t>(random() >> 5) - (1u << 26), static_cast<std::uint32_t>(random()),
                         static_cast<std::uint32_t>(random()), 1e-3f * static_cast<float>(1 + i % 7)});
  ProjectionOptions options;
  options.width = options.height = 50;
  const auto first = picture(particles, options);
  EXPECT_GT(first[49], 0);
  EXPECT_GT(first[0], 0);
  EXPECT_EQ(first[25], 0);
  std::shuffle(particles.begin(), particles.end(), random);
  EXPECT_EQ(first, picture(particles, options));
}

TEST(Projection, CountsParticlesWhateverTheirMasses) {
  std::vector<SourceParticle> set = {{at(0.3), at(0.7), at(0.1), 3.0f}, {at(0.9), at(0.2), at(0.5), 1e-6f}};
  ProjectionOptions options;
  options.width = options.height = 16;
  options.count_particles = true;
  const std::vector<double> counted = picture(set, options);
  for (SourceParticle& p : set) p.mass = 1;
  options.count_particles = false;
  EXPECT_EQ(counted, picture(set, options));
}

TEST(Projection, RefusesWhatMakesNoSense) {
  ProjectionOptions options;
  options.axis = 3;
  EXPECT_THROW(picture({{0, 0, 0, 1}}, options), Error);
  options = {};
  options.depth = 0;
  EXPECT_THROW(picture({{0, 0, 0, 1}}, options), Error);
  options = {};
  options.width = 0;
  EXPECT_THROW(picture({{0, 0, 0, 1}}, options), Error);
}

}  // namespace
}  // namespace maki
