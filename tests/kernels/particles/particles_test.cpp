#include "kernels/particles/particles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/error.hpp"
#include "kernels/particles/joined_sources.hpp"
#include "tests/kernels/particles/sets.hpp"
#include "tests/on_device.hpp"

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
  Particles particles;
  EXPECT_THROW(upload_particles(test::test_stream(), particles, {{0, 0, 0}}, {}, {1.0f}, {1}), Error);
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
  testing::upload_vectors<float>(stream, {{10, 20, -30}}, acceleration);
  kick(stream, particles, acceleration, 0.5);
  const HostParticles host = download_particles(stream, particles);
  EXPECT_EQ(host.momenta[0], (std::array<float, 3>{6, 12, -12}));
}

// Kicks of a thousandth of the last bit: none is felt where sums are rounded to the nearest, by chance as many as are
// due. A kick of 0 changes nothing.
TEST(Kick, SmallOnesAreNotLostByChance) {
  const Stream& stream = test::test_stream();
  const std::size_t n = 20000;
  std::vector<std::uint64_t> ids(n);
  std::iota(ids.begin(), ids.end(), 7);
  Particles particles;
  upload_particles(stream, particles, std::vector(n, std::array{0.5, 0.5, 0.5}),
                   std::vector(n, std::array{1.f, -1.f, 3.f}), std::vector(n, 1.f), ids);
  VectorArray acceleration("test.acceleration");
  const float a = 1e-3f * 0x1p-23f;  // the last bit of 1; that of -1 towards 0 is half of it, of 3 it is twice
  testing::upload_vectors<float>(stream, std::vector(n, std::array{a, a, 0.f}), acceleration);
  kick(stream, particles, acceleration, 1);
  for (const auto& p : download_particles(stream, particles).momenta) ASSERT_EQ(p, (std::array{1.f, -1.f, 3.f}));
  const int kicks = 50;
  for (std::uint64_t draw = 1; draw <= kicks; ++draw) kick(stream, particles, acceleration, 1, draw);
  std::array<double, 2> mean{};
  for (const auto& p : download_particles(stream, particles).momenta) {
    mean[0] += (p[0] - 1.0) / static_cast<double>(n), mean[1] += (p[1] + 1.0) / static_cast<double>(n);
    ASSERT_EQ(p[2], 3);
  }
  const double due = kicks * static_cast<double>(a);  // one in twenty, or in ten, has moved by a bit
  EXPECT_NEAR(mean[0], due, 0.2 * due);
  EXPECT_NEAR(mean[1], due, 0.2 * due);
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

using Set = std::vector<SourceParticle>;

auto place_of(const SourceParticle& p) {
  return std::tuple(morton_key(p.x, p.y, p.z), p.x & 0x7ffu, p.y & 0x7ffu, p.z & 0x7ffu);
}

std::vector<std::array<std::uint32_t, 4>> words_of(const Set& set) {
  std::vector<std::array<std::uint32_t, 4>> words;
  for (const SourceParticle& p : set) words.push_back(std::bit_cast<std::array<std::uint32_t, 4>>(p));
  return words;
}

// Half of it in a few cubes of the finest level, where particles have one key. No two share a place; masses tell them
// apart.
Set set_with_equal_keys(std::size_t n, unsigned seed) {
  Set set = testing::uniform_set(n, seed);
  std::mt19937 random(seed);
  const auto fine = [&] { return static_cast<std::uint32_t>(random() & 0x7ffu); };
  for (std::size_t i = 0; i < n; ++i) {
    SourceParticle& p = set[i];
    if (i % 2 == 0) {
      const SourceParticle& cube = set[i % 14];  // i = 0, 2 ... 12: itself
      p = {(cube.x & ~0x7ffu) | fine(), (cube.y & ~0x7ffu) | fine(),
           (cube.z & ~0x7ffu) | static_cast<std::uint32_t>(i & 0x7ffu), 0};
    }
    p.mass = static_cast<float>(i + 1);
  }
  return set;
}

struct Joined {
  const Stream& stream = test::test_stream();
  Set own_set, other_set;
  DeviceBuffer<SourceParticle> own{"own"}, others{"others"};
  JoinedSources sources;

  Joined(const Set& a, const Set& b) : own_set(a), other_set(b) {
    testing::sort_by_key(own_set);
    own.upload(stream, own_set);
    others.upload(stream, other_set);
    sources.join(stream, own.data(), own_set.size(), others.data(), other_set.size());
  }
  Set found() const {
    Set set(sources.size());
    copy_to_host(stream, set.data(), sources.data(), set.size() * sizeof(SourceParticle));
    return set;
  }
};

// `part` of the set is own, all divided and ordered by chance.
Joined split(Set set, double part, unsigned seed) {
  std::mt19937 random(seed);
  std::shuffle(set.begin(), set.end(), random);
  const auto middle = set.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(set.size()));
  return {{set.begin(), middle}, {middle, set.end()}};
}

TEST(JoinedSources, TheOrderIsThatOfPlacesHoweverTheyAreDivided) {
  const Set set = set_with_equal_keys(6000, 1);
  Set sorted = set;
  std::ranges::sort(sorted, {}, [](const SourceParticle& p) { return place_of(p); });
  std::vector<std::uint64_t> keys;
  for (const SourceParticle& p : sorted) keys.push_back(morton_key(p.x, p.y, p.z));
  ASSERT_NE(std::adjacent_find(keys.begin(), keys.end()), keys.end()) << "some keys are equal";
  unsigned seed = 0;
  for (const double part : {0.0, 0.001, 0.3, 0.5, 0.9, 1.0}) {
    const Joined joined = split(set, part, ++seed);
    ASSERT_EQ(joined.sources.size(), set.size());
    EXPECT_EQ(words_of(joined.found()), words_of(sorted)) << part;
    EXPECT_EQ(joined.sources.keys().download(joined.stream), keys) << part;
  }
}

// Sources that have moved stand where they stood, also where they have changed their order in space.
TEST(JoinedSources, RefreshedSourcesStayWhereTheyStand) {
  Joined joined = split(set_with_equal_keys(3000, 4), 0.4, 5);
  const Set before = joined.found();
  for (Set* set : {&joined.own_set, &joined.other_set})
    for (SourceParticle& p : *set) p.x = p.x * 3 + 0x90000000u, p.y -= 77, p.z = ~p.z;
  joined.own.upload(joined.stream, joined.own_set);
  test::OnDevice elsewhere(joined.other_set);  // they need not come to the same memory
  joined.sources.refresh_own(joined.stream, joined.own.data());
  joined.sources.refresh_others(joined.stream, elsewhere.data());
  Set expected = before;
  for (SourceParticle& p : expected) p.x = p.x * 3 + 0x90000000u, p.y -= 77, p.z = ~p.z;
  EXPECT_EQ(words_of(joined.found()), words_of(expected));
}

// The value of a source is its mass, or its mass and the number of an axis.
TEST(JoinedSources, OwnSourcesGetTheirValuesBack) {
  for (const double part : {0.0, 0.5, 1.0}) {
    const Joined joined = split(set_with_equal_keys(2000, 9), part, 10);
    const Stream& stream = joined.stream;
    std::vector<float> values, expected;
    std::vector<std::array<float, 3>> vectors, expected_vectors;
    const auto vector_of = [](float v) { return std::array{v, v + 10000, v + 20000}; };
    for (const SourceParticle& p : joined.found()) values.push_back(p.mass), vectors.push_back(vector_of(p.mass));
    for (const SourceParticle& p : joined.own_set)
      expected.push_back(p.mass), expected_vectors.push_back(vector_of(p.mass));
    DeviceBuffer<float> own("own", joined.own_set.size());
    test::OnDevice all(values);
    joined.sources.own_values(stream, all.data(), own.data());
    EXPECT_EQ(own.download(stream), expected) << part;

    VectorArray all_vectors("values"), own_vectors("own");
    own_vectors.resize(joined.own_set.size());
    testing::upload_vectors(stream, vectors, all_vectors);
    joined.sources.own_values(stream, std::as_const(all_vectors).view(), own_vectors.view());
    EXPECT_EQ(own_vectors.download(stream), expected_vectors) << part;
  }
}

}  // namespace
}  // namespace maki
