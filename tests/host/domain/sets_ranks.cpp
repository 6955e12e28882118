#include "tests/host/domain/sets_ranks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace maki::test {
namespace {

std::uint32_t to_fixed(double fraction) {
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(std::floor(fraction * 0x1p32)));
}

}  // namespace

std::uint64_t hash(std::uint64_t id, std::uint64_t purpose) {
  std::uint64_t v = (id * 64 + purpose + 1) * 0x9e3779b97f4a7c15ull;  // splitmix64
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ v >> 27) * 0x94d049bb133111ebull;
  return v ^ v >> 31;
}

Fields fields_of(std::uint64_t id) {
  const auto word = [id](std::uint64_t purpose) { return static_cast<std::uint32_t>(hash(id, purpose) >> 32); };
  const auto number = [&](std::uint64_t purpose) { return static_cast<float>(word(purpose) >> 8); };
  const auto half = [&](std::uint64_t purpose) { return static_cast<std::uint16_t>(word(purpose) >> 16); };
  return {{word(0), word(1), word(2), number(3)}, {half(4), half(5), half(6)}, {number(7), number(8), number(9)},
          {number(10), number(11)}};
}

void make_particles(const Stream& stream, const std::vector<std::uint64_t>& ids, Particles& particles,
                    std::vector<DeviceBuffer<float>>& extra) {
  std::vector<SourceParticle> source;
  std::vector<Remainder> remainder;
  std::vector<float> momentum[3], further[2];
  for (const std::uint64_t id : ids) {
    const Fields f = fields_of(id);
    source.push_back(f.source);
    remainder.push_back(f.remainder);
    for (int a = 0; a < 3; ++a) momentum[a].push_back(f.momentum[a]);
    for (int a = 0; a < 2; ++a) further[a].push_back(f.extra[a]);
  }
  particles.source.upload(stream, source);
  particles.remainder.upload(stream, remainder);
  particles.momentum.x.upload(stream, momentum[0]);
  particles.momentum.y.upload(stream, momentum[1]);
  particles.momentum.z.upload(stream, momentum[2]);
  particles.id.upload(stream, ids);
  extra.clear();
  for (const std::vector<float>& values : further) {
    extra.emplace_back("test.extra");
    extra.back().upload(stream, values);
  }
  stream.synchronize();
}

void expect_fields_of_ids(const Stream& stream, const Particles& particles,
                          const std::vector<DeviceBuffer<float>>& extra) {
  const auto source = particles.source.download(stream);
  const auto remainder = particles.remainder.download(stream);
  const std::vector<float> momentum[3] = {particles.momentum.x.download(stream), particles.momentum.y.download(stream),
                                          particles.momentum.z.download(stream)};
  const auto id = particles.id.download(stream);
  const std::vector<float> further[2] = {extra[0].download(stream), extra[1].download(stream)};
  for (const std::size_t length : {remainder.size(), momentum[0].size(), momentum[1].size(), momentum[2].size(),
                                   id.size(), further[0].size(), further[1].size()})
    ASSERT_EQ(length, source.size());
  for (std::size_t i = 0; i < id.size(); ++i) {
    const Fields f = fields_of(id[i]);
    ASSERT_EQ(source[i].x, f.source.x) << "id " << id[i];
    ASSERT_EQ(source[i].y, f.source.y);
    ASSERT_EQ(source[i].z, f.source.z);
    ASSERT_EQ(source[i].mass, f.source.mass);
    ASSERT_EQ(remainder[i].x, f.remainder.x);
    ASSERT_EQ(remainder[i].y, f.remainder.y);
    ASSERT_EQ(remainder[i].z, f.remainder.z);
    for (int a = 0; a < 3; ++a) ASSERT_EQ(momentum[a][i], f.momentum[a]);
    for (int a = 0; a < 2; ++a) ASSERT_EQ(further[a][i], f.extra[a]);
  }
}

std::vector<SamplePoint> plummer_set(std::size_t n, std::array<double, 3> centre, double scale, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(1e-9, 1);
  std::vector<SamplePoint> points;
  while (points.size() < n) {
    const double r = scale / std::sqrt(std::pow(uniform(random), -2.0 / 3) - 1);
    if (!(r < 0.2)) continue;
    const double cosine = 2 * uniform(random) - 1, sine = std::sqrt(1 - cosine * cosine);
    const double angle = 2 * std::numbers::pi * uniform(random);
    points.push_back({to_fixed(centre[0] + r * sine * std::cos(angle)),
                      to_fixed(centre[1] + r * sine * std::sin(angle)), to_fixed(centre[2] + r * cosine)});
  }
  return points;
}

std::vector<SamplePoint> clump_set(std::size_t n, std::size_t clumps, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> richness(0, 1.5);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> mass(clumps);
  double sum = 0;
  for (double& m : mass) sum += m = richness(random);
  std::vector<SamplePoint> points;
  for (std::size_t c = 0; c < clumps; ++c) {
    const auto members = static_cast<std::size_t>(static_cast<double>(n) * mass[c] / sum);
    const std::array<double, 3> centre{uniform(random), uniform(random), uniform(random)};
    const auto clump = plummer_set(members, centre, 0.003 * std::cbrt(mass[c]), seed + 1 + c);
    points.insert(points.end(), clump.begin(), clump.end());
  }
  return points;
}

}  // namespace maki::test
