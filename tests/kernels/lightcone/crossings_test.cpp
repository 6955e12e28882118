#include "kernels/lightcone/crossings.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "kernels/particles/types.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

constexpr std::int64_t kSide = std::int64_t{1} << 48;

// A particle and an image of it, named by its place at the beginning.
using ImageName = std::tuple<std::uint64_t, int, int, int>;

// Particles that move uniformly, as integers that are not wrapped.
struct Moving {
  std::vector<std::array<std::int64_t, 3>> places;
  std::vector<std::array<float, 3>> momenta;
};

struct Cone {
  std::array<std::int64_t, 3> observer{};
  std::vector<double> radii;  // at the ends of drifts, sides
  double factor = 0;
};

std::array<std::int64_t, 3> steps_of(const std::array<float, 3>& momentum, double factor) {
  std::array<std::int64_t, 3> steps{};
  for (std::size_t axis = 0; axis < 3; ++axis)
    steps[axis] = static_cast<std::int64_t>(to_fine(momentum[axis] * factor));
  return steps;
}

// Particles anywhere, and some that begin, end or stand on the edges of the box.
Moving particles_about_the_edges(std::size_t n, float fastest) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<float> momentum(-fastest, fastest);
  std::uniform_int_distribution<std::int64_t> place(0, kSide - 1), near(-3, 3);
  Moving set;
  for (std::size_t i = 0; i < n; ++i) {
    std::array<std::int64_t, 3> x{};
    for (std::int64_t& one : x) one = i % 3 == 0 ? (near(random) + kSide) % kSide : place(random);
    set.places.push_back(x);
    set.momenta.push_back({momentum(random), i % 5 == 0 ? 0 : momentum(random), momentum(random)});
  }
  return set;
}

Particles on_device(const Moving& set) {
  std::vector<std::array<double, 3>> fractions;
  std::vector<std::uint64_t> ids;
  for (const auto& x : set.places) {
    fractions.push_back({static_cast<double>(x[0]) / kSideToFine, static_cast<double>(x[1]) / kSideToFine,
                         static_cast<double>(x[2]) / kSideToFine});
    ids.push_back(ids.size());
  }
  Particles particles;
  upload_particles(test::test_stream(), particles, fractions, set.momenta, std::vector<float>(ids.size(), 2), ids);
  return particles;
}

LightSphere sphere_of(const Cone& cone, std::size_t drift) {
  LightSphere sphere;
  std::copy(cone.observer.begin(), cone.observer.end(), sphere.observer);
  const double before = cone.radii[drift], after = cone.radii[drift + 1];
  sphere.before = std::llround(before * kSideToFine);
  sphere.after = std::llround(after * kSideToFine);
  const double step = (after - before) / 3;
  sphere.radius = cubic_through({0, 1.0 / 3, 2.0 / 3, 1}, {before, before + step, before + 2 * step, after});
  return sphere;
}

double from_observer(const Moving& set, const Cone& cone, std::size_t i, const std::array<int, 3>& image, int drifts) {
  const auto steps = steps_of(set.momenta[i], cone.factor);
  long double sum = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto x = static_cast<long double>(set.places[i][axis] + image[axis] * kSide + drifts * steps[axis] -
                                            cone.observer[axis]);
    sum += x * x;
  }
  return static_cast<double>(std::sqrt(sum) / static_cast<long double>(kSide));
}

// Images that are inside at the beginning of all drifts and outside at their end: each is met once.
std::set<ImageName> expected(const Moving& set, const Cone& cone) {
  const int drifts = static_cast<int>(cone.radii.size()) - 1, reach = static_cast<int>(cone.radii.front()) + 3;
  std::set<ImageName> names;
  for (std::size_t i = 0; i < set.places.size(); ++i)
    for (int x = -reach; x <= reach; ++x)
      for (int y = -reach; y <= reach; ++y)
        for (int z = -reach; z <= reach; ++z)
          if (from_observer(set, cone, i, {x, y, z}, 0) < cone.radii.front() &&
              from_observer(set, cone, i, {x, y, z}, drifts) >= cone.radii.back())
            names.insert({i, x, y, z});
  return names;
}

// The image of a crossing in drift number `drift`, by where it would have begun.
ImageName name_of(const Crossing& met, const Moving& set, const Cone& cone, std::size_t drift) {
  const auto steps = steps_of(set.momenta[met.id], cone.factor);
  const double place[3] = {met.x, met.y, met.z};
  int image[3];
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double gone = (static_cast<double>(drift) + met.part) * static_cast<double>(steps[axis]);
    const double begun = place[axis] - (gone - static_cast<double>(cone.observer[axis])) / kSideToFine;
    image[axis] = static_cast<int>(std::lround(begun - static_cast<double>(set.places[met.id][axis]) / kSideToFine));
  }
  return {met.id, image[0], image[1], image[2]};
}

struct Met {
  std::map<ImageName, int> names;
  std::vector<Crossing> crossings;
  std::size_t largest = 0;  // batch
};
Met meet(const Moving& set, const Cone& cone, const FieldOfView& view = {}) {
  const Stream& stream = test::test_stream();
  Particles particles = on_device(set);
  Met all;
  for (std::size_t k = 0; k + 1 < cone.radii.size(); ++k) {
    drift(stream, particles, cone.factor);
    const LightSphere sphere = sphere_of(cone, k);
    find_crossings(stream, particles, cone.factor, sphere, image_columns(sphere, view),
                   [&](const std::vector<Crossing>& some) {
                     all.largest = std::max(all.largest, some.size());
                     for (const Crossing& met : some) {
                       EXPECT_NEAR(std::hypot(met.x, met.y, met.z), sphere.radius(met.part), 1e-12);
                       if (!view.holds(met.x, met.y, met.z)) continue;
                       ++all.names[name_of(met, set, cone, k)];
                       all.crossings.push_back(met);
                     }
                   });
  }
  return all;
}

Met expect_each_once(const Moving& set, const Cone& cone) {
  const std::set<ImageName> wanted = expected(set, cone);
  const Met met = meet(set, cone);
  std::size_t twice = 0, foreign = 0;
  for (const auto& [name, count] : met.names) {
    twice += count > 1;
    foreign += wanted.count(name) == 0;
  }
  EXPECT_EQ(twice, 0u);
  EXPECT_EQ(foreign, 0u);
  EXPECT_EQ(met.names.size(), wanted.size());
  EXPECT_GT(wanted.size(), 100u);
  return met;
}

TEST(Crossings, EveryImageIsMetOnceAcrossTheEdgesOfTheBox) {
  const Moving set = particles_about_the_edges(60, 1);
  expect_each_once(set, {{kSide / 3, kSide / 7, kSide / 2}, {3.1, 2.7, 2.65, 2.2, 1.9, 1.1, 0.6, 0.2, 0}, 0.02});
}

TEST(Crossings, AnObserverMayStandInACornerOrOnAParticle) {
  const Moving set = particles_about_the_edges(60, 1);
  expect_each_once(set, {{0, 0, 0}, {2, 1.5, 1, 0.7, 0.3, 0}, 0.05});
  expect_each_once(set, {set.places[1], {2, 1.5, 1, 0.7, 0.3, 0}, 0.05});
}

// Radii that lie on lattice distances: whether such an image is inside is decided alike by both drifts.
TEST(Crossings, ImagesThatAreJustOnTheSphereWhereAStepEndsAreMetOnce) {
  Moving set;
  for (int i = 0; i < 64; ++i) {
    set.places.push_back({i % 4 * (kSide / 4), i / 4 % 4 * (kSide / 4), i / 16 * (kSide / 4)});
    set.momenta.push_back({0, 0, 0});
  }
  expect_each_once(set, {{0, 0, 0}, {2, 1.75, 1.5, std::sqrt(2.0), 1.25, 1, 0.75, 0.5, 0.25}, 0.1});
}

TEST(Crossings, AFieldOfViewHoldsItsPartOfTheSky) {
  const Moving set = particles_about_the_edges(60, 1);
  const Cone cone{{kSide / 3, kSide / 7, kSide / 2}, {3.1, 2.6, 2.2, 1.5, 0.7, 0}, 0.04};
  const Met all = meet(set, cone);
  for (const double angle : {0.02, 0.3, 1.2, 2.5}) {
    const FieldOfView view{{2.0 / 3, -1.0 / 3, 2.0 / 3}, std::cos(angle)};
    std::size_t inside = 0;
    for (const Crossing& met : all.crossings) inside += view.holds(met.x, met.y, met.z);
    EXPECT_EQ(meet(set, cone, view).crossings.size(), inside) << angle;
    if (angle > 0.2) {
      EXPECT_GT(inside, 10u);
    }
  }
}

TEST(Crossings, NarrowViewsHaveFewColumns) {
  Cone cone{{0, 0, 0}, {10.05, 10}, 0};
  const LightSphere sphere = sphere_of(cone, 0);
  EXPECT_LT(image_columns(sphere, {.cos_angle = std::cos(0.01)}).size(), 20u);
  EXPECT_GT(image_columns(sphere, {}).size(), 300u);
}

// A column of images along the rim of the sphere meets it many times a particle.
TEST(Crossings, BatchesAreSmallForFarSpheresToo) {
  const std::size_t n = 60;
  const Met met =
      expect_each_once(particles_about_the_edges(n, 1), {{kSide / 3, kSide / 7, kSide / 2}, {25, 24.5}, 0.02});
  EXPECT_GT(met.crossings.size(), 3000 * n);
  EXPECT_LE(met.largest, n / 4 + 1);
}

TEST(Crossings, TakeTheBytesOfTheirEstimate) {
  const std::size_t n = 3000;
  const FieldOfView rim{{1, 0, 0}, std::cos(0.02)};
  pool_watch({{"lightcone.columns"}});
  const Met met = meet(particles_about_the_edges(n, 1), {{0, 0, 0}, {40, 39.5}, 0.02}, rim);
  const PoolPeak peak = pool_report().peaks.at(1);
  std::size_t bytes = 0;
  for (const PoolUse& use : peak.arrays) bytes += use.name.starts_with("lightcone.") ? use.bytes : 0;
  EXPECT_LE(static_cast<double>(bytes), kCrossingBytes * n + 2048);
  EXPECT_GT(static_cast<double>(bytes), 0.9 * kCrossingBytes * n);
  EXPECT_LE(met.largest, n / 4 + 1);
}

TEST(Crossings, CubicsGoThroughTheirPoints) {
  const std::array<double, 4> parts = {0, 0.3, 0.71, 1}, values = {4, 1, -2, 7};
  const DriftCubic cubic = cubic_through(parts, values);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(cubic(parts[i]), values[i], 1e-13);
}

}  // namespace
}  // namespace maki
