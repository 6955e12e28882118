// Power spectra and pictures of one rank's particles.
#include "host/measure/spectra.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/error.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/on_device.hpp"
#include "tests/test_stream.hpp"
#include "tests/threads.hpp"

namespace maki {
namespace {

constexpr double kPi = std::numbers::pi;

MeasuredPower power_of(const std::vector<SourceParticle>& particles, const MeasurePowerOptions& options) {
  const Stream& stream = test::test_stream();
  const test::OnDevice source(particles);
  return measure_power(Communicator::self(), stream, source.data(), particles.size(), options);
}

// side^3 particles on a lattice, masses 1 + amplitude cos(2 pi n x).
std::vector<SourceParticle> plane_wave(int log_side, int n, double amplitude) {
  const int side = 1 << log_side;
  std::vector<SourceParticle> particles;
  for (int i = 0; i < side * side * side; ++i) {
    const auto at = [&](int c) { return static_cast<std::uint32_t>(c) << (32 - log_side); };
    const int x = i / (side * side);
    particles.push_back({at(x), at(i / side % side), at(i % side),
                         static_cast<float>(2.5 * (1 + amplitude * std::cos(2 * kPi * n * x / side)))});
  }
  return particles;
}

TEST(MeasuredPower, MeasuresAPlaneWave) {
  // On a lattice of 32^3 and a mesh of 48^3, so that the cloud matters: n = 9 is at 3/8 of the Nyquist wave number.
  const MeasuredPower p = power_of(plane_wave(5, 9, 0.3), {.cells = 48});
  EXPECT_NEAR(p.shot_noise, (1 + 0.3 * 0.3 / 2) / (32.0 * 32 * 32), 1e-9);
  EXPECT_NEAR(p.nyquist, kPi * 48, 1e-9);
  ASSERT_EQ(p.bins.size(), 24u);
  std::uint64_t modes = 0;
  for (std::size_t b = 0; b < p.bins.size(); ++b) {
    const double n = static_cast<double>(b) + 1;
    EXPECT_NEAR(p.bins[b].k, 2 * kPi * n, kPi);
    // n and -n carry |delta_k| = amplitude / 2, and so does 32 - n: the lattice cannot tell them apart.
    const double expected = n == 9 || n == 23 ? 2 * 0.15 * 0.15 : 0.0;
    EXPECT_NEAR(p.bins[b].power * static_cast<double>(p.bins[b].modes), expected, n < 16 ? 2e-5 : 2e-3) << n;
    modes += p.bins[b].modes;
  }
  std::uint64_t all = 0;
  for (int x = -24; x <= 24; ++x)
    for (int y = -24; y <= 24; ++y)
      for (int z = -24; z <= 24; ++z) all += x * x + y * y + z * z > 0 && x * x + y * y + z * z < 24 * 24;
  EXPECT_EQ(modes, all);
}

TEST(MeasuredPower, OfRandomParticlesIsShotNoise) {
  const auto particles = testing::random_set(40000, 3, 7);
  for (int folding : {1, 5}) {
    const MeasuredPower p = power_of(particles, {.cells = 32, .bin_width = 2.0 * folding, .folding = folding});
    EXPECT_NEAR(p.shot_noise, 1.0 / 40000, 1e-12);
    for (const PowerBin& bin : p.bins) {
      const double scatter = std::sqrt(2.0 / static_cast<double>(bin.modes));
      EXPECT_NEAR(bin.power, 1.0 / 40000, (4.5 * scatter + 0.01) / 40000) << bin.k;
    }
  }
}

TEST(MeasuredPower, IsTheSameForAnyThreadCount) {
  const auto particles = testing::random_set(3000, 3, 7);
  const MeasurePowerOptions options = {.cells = 16};
  const auto powers = [&] {
    std::vector<double> values;
    for (const PowerBin& bin : power_of(particles, options).bins) values.push_back(bin.power);
    return values;
  };
  test::expect_same_for_threads(powers, {1, 3});
}

TEST(MeasuredPower, RefusesWhatMakesNoSense) {
  EXPECT_THROW(power_of({}, {.cells = 16}), Error);
  EXPECT_THROW(power_of({{0, 0, 0, 0.0f}}, {.cells = 16}), Error);
  EXPECT_THROW(power_of(testing::random_set(10, 3, 7), {.cells = 16, .folding = 0}), Error);
  EXPECT_THROW(power_of(testing::random_set(10, 3, 7), {.cells = 15}), Error);
}

constexpr auto at = testing::to_fixed;

std::vector<double> picture(const std::vector<SourceParticle>& particles, const ProjectionOptions& options) {
  const Stream& stream = test::test_stream();
  const test::OnDevice source(particles);
  return project_density(Communicator::self(), stream, source.data(), particles.size(), options);
}

double total(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(Projection, PutsAParticleIntoItsPixel) {
  const std::vector<SourceParticle> one = {{at(0.34375), at(0.71875), at(0.09375), 3.0f}};  // middles of sixteenths
  const int across[3][2] = {{11, 1}, {5, 1}, {5, 11}};  // pixel (first axis, second axis) by line of sight, of 16
  for (int axis = 0; axis < 3; ++axis) {
    const auto d = picture(one, {.axis = axis, .width = 16, .height = 32});
    ASSERT_EQ(d.size(), 16u * 32u);
    EXPECT_NEAR(total(d) / (16 * 32), 3.0, 1e-5);
    const auto brightest = std::max_element(d.begin(), d.end()) - d.begin();
    EXPECT_EQ(brightest % 16, across[axis][0]) << axis;
    EXPECT_EQ(brightest / 32, across[axis][1]) << axis;
  }
}

TEST(Projection, CutsASlabAndAWindow) {
  const auto particles = testing::random_set(200000, 9, 1.0f / 200000);
  const auto whole = picture(particles, {.width = 8, .height = 8});
  EXPECT_NEAR(total(whole) / 64, 1.0, 1e-6);
  for (double d : whole) EXPECT_NEAR(d, 1.0, 0.1);
  const ProjectionOptions slab{.width = 8, .height = 8, .front = 0.9, .depth = 0.25};  // around the edge of the box
  EXPECT_NEAR(total(picture(particles, slab)) / 64, 0.25, 0.01);
  const auto window = picture(particles, {.width = 8, .height = 8, .left = 0.25, .bottom = 0.5, .extent = 0.25});
  EXPECT_NEAR(window[3 * 8 + 4], 1.0, 0.2);
  EXPECT_LT(total(window) / 64, 1.05);
}

// Pixels at the border of a window get their share of particles outside of it.
TEST(Projection, IsEvenUpToTheBorderOfAWindow) {
  std::vector<SourceParticle> lattice;
  for (int x = 0; x < 64; ++x)
    for (int y = 0; y < 64; ++y) lattice.push_back({at((x + 0.25) / 64), at((y + 0.75) / 64), at(0.5), 1.0f / 4096});
  // Around the edge of the box.
  ProjectionOptions options{.width = 8, .height = 8, .left = 0.9, .bottom = 0.3, .extent = 0.25};
  for (const double density : picture(lattice, options)) EXPECT_NEAR(density, 1, 0.02);
  options.extent = 63.0 / 64;  // a particle outside is near both borders
  options.width = options.height = 63;
  for (const double density : picture(lattice, options)) EXPECT_NEAR(density, 1, 0.02);
}

TEST(Projection, HasEmptySpaceAroundABoxThatIsNotPeriodic) {
  const auto particles = testing::random_set(20000, 9, 1.0f / 20000);
  const auto mass = [&](ProjectionOptions o) {  // in a picture of 8 x 8 pixels
    o.width = o.height = 8;
    o.periodic = false;
    return total(picture(particles, o)) * o.extent * o.extent / 64;
  };
  const auto wide =
      picture(particles, {.width = 8, .height = 8, .left = -1, .bottom = -2, .extent = 4, .periodic = false});
  for (int i = 0; i < 64; ++i) {
    const int x = i % 8, y = i / 8;  // the box is two pixels wide, from the third and the fifth on
    const bool seen = x >= 1 && x <= 4 && y >= 3 && y <= 6, within = seen && x % 3 != 1 && y % 3 != 0;
    const double density = wide[static_cast<std::size_t>(i)];
    EXPECT_EQ(density > 0, seen) << x << ' ' << y;
    EXPECT_EQ(density > 0.6, within) << x << ' ' << y;
  }
  EXPECT_NEAR(mass({.left = -1, .bottom = -2, .extent = 4}), 1, 1e-6);
  EXPECT_NEAR(mass({.left = -0.5 * kMostProjected, .bottom = 1 - kMostProjected / 2, .extent = kMostProjected}), 1,
              1e-6);
  EXPECT_NEAR(mass({.front = 0.75, .depth = kMostProjected, .left = -0.1, .bottom = -0.1, .extent = 1.2}), 0.25, 0.02);
  for (const double from : {-1e300, -3e9, -2.0, 1.2, 1001.0, 3e9, 1e300}) {
    EXPECT_EQ(mass({.left = from, .extent = 0.9}), 0) << from;
    EXPECT_EQ(mass({.bottom = from, .extent = 0.9}), 0) << from;
    EXPECT_EQ(mass({.front = from, .depth = 0.9}), 0) << from;
  }
  EXPECT_THROW(mass({.extent = 1.1 * kMostProjected}), Error);
  EXPECT_THROW(picture(particles, {.extent = 1.1}), Error);
}

// Of a set in the middle of the box, whose window lies in the box.
TEST(Projection, IsThatOfAPeriodicBoxFarFromItsEdges) {
  const auto particles = testing::uniform_set(3000, 4, 0.3, 0.7);
  ProjectionOptions options{.width = 30, .height = 20, .front = 0.35, .depth = 0.5, .left = 0.4, .bottom = 0.45};
  for (const double extent : {0.1, 0.55}) {
    options.extent = extent;
    options.periodic = true;
    const auto periodic = picture(particles, options);
    options.periodic = false;
    EXPECT_EQ(picture(particles, options), periodic) << extent;
  }
}

TEST(Projection, WrapsAndDoesNotDependOnOrder) {
  std::mt19937 random(2);
  std::vector<SourceParticle> particles;
  for (int i = 0; i < 5000; ++i)
    particles.push_back({static_cast<std::uint32_t>(random() >> 5) - (1u << 26), static_cast<std::uint32_t>(random()),
                         static_cast<std::uint32_t>(random()), 1e-3f * static_cast<float>(1 + i % 7)});
  const ProjectionOptions options{.width = 50, .height = 50};
  const auto first = picture(particles, options);
  EXPECT_GT(first[49], 0);
  EXPECT_GT(first[0], 0);
  EXPECT_EQ(first[25], 0);
  std::shuffle(particles.begin(), particles.end(), random);
  EXPECT_EQ(first, picture(particles, options));
}

TEST(Projection, CountsParticlesWhateverTheirMasses) {
  std::vector<SourceParticle> set = {{at(0.3), at(0.7), at(0.1), 3.0f}, {at(0.9), at(0.2), at(0.5), 1e-6f}};
  const std::vector<double> counted = picture(set, {.width = 16, .height = 16, .count_particles = true});
  for (SourceParticle& p : set) p.mass = 1;
  EXPECT_EQ(counted, picture(set, {.width = 16, .height = 16}));
}

TEST(Projection, RefusesWhatMakesNoSense) {
  EXPECT_THROW(picture({{0, 0, 0, 1}}, {.axis = 3}), Error);
  EXPECT_THROW(picture({{0, 0, 0, 1}}, {.depth = 0}), Error);
  EXPECT_THROW(picture({{0, 0, 0, 1}}, {.width = 0}), Error);
}

}  // namespace
}  // namespace maki
