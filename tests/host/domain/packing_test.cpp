#include "host/domain/migrate.hpp"

#include <gtest/gtest.h>

#include "host/domain/multisection.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

// Every field of particle i tells i.
void fill(const Stream& stream, Particles& particles, std::uint32_t n, std::uint32_t base = 0) {
  std::vector<SourceParticle> source;
  std::vector<Remainder> remainder;
  std::vector<float> momentum[3];
  std::vector<std::uint64_t> id;
  for (std::uint32_t i = base; i < base + n; ++i) {
    source.push_back({i << 28, i, 7 * i, static_cast<float>(i)});
    const auto small = static_cast<std::uint16_t>(i);
    remainder.push_back({small, static_cast<std::uint16_t>(2 * small), static_cast<std::uint16_t>(3 * small)});
    for (int a = 0; a < 3; ++a) momentum[a].push_back(static_cast<float>(100 * a + static_cast<int>(i)));
    id.push_back((std::uint64_t{1} << 40) + i);
  }
  particles.source.upload(stream, source);
  particles.remainder.upload(stream, remainder);
  particles.momentum.x.upload(stream, momentum[0]);
  particles.momentum.y.upload(stream, momentum[1]);
  particles.momentum.z.upload(stream, momentum[2]);
  particles.id.upload(stream, id);
  stream.synchronize();
}

void expect_particles(const Stream& stream, const Particles& particles, const std::vector<std::uint32_t>& which) {
  Particles expected;
  fill(stream, expected, 100);
  const auto all_source = expected.source.download(stream), source = particles.source.download(stream);
  const auto all_remainder = expected.remainder.download(stream), remainder = particles.remainder.download(stream);
  const auto all_id = expected.id.download(stream), id = particles.id.download(stream);
  const auto x = particles.momentum.x.download(stream), y = particles.momentum.y.download(stream),
             z = particles.momentum.z.download(stream);
  ASSERT_EQ(source.size(), which.size());
  ASSERT_EQ(z.size(), which.size());
  for (std::size_t k = 0; k < which.size(); ++k) {
    const std::uint32_t i = which[k];
    EXPECT_EQ(id[k], all_id[i]);
    EXPECT_EQ(source[k].x, all_source[i].x);
    EXPECT_EQ(source[k].y, all_source[i].y);
    EXPECT_EQ(source[k].z, all_source[i].z);
    EXPECT_EQ(source[k].mass, all_source[i].mass);
    EXPECT_EQ(remainder[k].x, all_remainder[i].x);
    EXPECT_EQ(remainder[k].y, all_remainder[i].y);
    EXPECT_EQ(remainder[k].z, all_remainder[i].z);
    EXPECT_EQ(x[k], static_cast<float>(i));
    EXPECT_EQ(y[k], static_cast<float>(100 + i));
    EXPECT_EQ(z[k], static_cast<float>(200 + i));
  }
}

TEST(Packing, BlocksStandAlignedOneAfterAnother) {
  const BlockPlaces places({3, 0, 1}, 2);
  EXPECT_EQ(places.particle_bytes, 50u);
  EXPECT_EQ(places.first, (std::vector<std::uint64_t>{0, 3, 3, 4}));
  EXPECT_EQ(places.begin, (std::vector<std::uint64_t>{0, 160, 160, 224}));
  EXPECT_EQ(places.bytes(0), 150u);
  EXPECT_EQ(places.bytes(1), 0u);
}

// x = i << 28 of 16 particles: four to each of four slabs.
TEST(Packing, LeaversAreSortedByOwnerAndTheOthersStayInOrder) {
  const Stream& stream = test::test_stream();
  Particles particles;
  fill(stream, particles, 16);
  const Domains domains({4, 1, 1});
  DeviceBuffer<std::uint32_t> starts("test.starts");
  starts.upload(stream, {domains.starts().begin(), domains.starts().end()});
  const Leavers leavers = select_leavers(stream, particles, domains.view_of(starts.data()), 1);
  EXPECT_EQ(leavers.counts, (std::vector<std::uint64_t>{4, 0, 4, 4}));
  EXPECT_EQ(leavers.staying.download(stream), (std::vector<std::uint32_t>{4, 5, 6, 7}));
  EXPECT_EQ(leavers.index.download(stream), (std::vector<std::uint32_t>{0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(Packing, WhatIsPackedIsAppendedUnchanged) {
  const Stream& stream = test::test_stream();
  Particles particles;
  fill(stream, particles, 16);
  DeviceBuffer<float> extra("test.extra");
  std::vector<float> values(16);
  for (std::size_t i = 0; i < 16; ++i) values[i] = static_cast<float>(i) / 8;
  extra.upload(stream, values);
  DeviceBuffer<float>* const arrays[] = {&extra};
  DeviceBuffer<std::uint32_t> chosen("test.chosen"), staying("test.staying");
  chosen.upload(stream, {9, 2, 15, 3, 0});
  staying.upload(stream, {1, 14});
  const BlockPlaces places({2, 0, 3}, 1);
  const DeviceBuffer<std::byte> packed = pack(stream, particles, arrays, chosen, places);
  EXPECT_EQ(packed.size(), places.size());

  keep_and_append(stream, particles, arrays, &staying, packed, places);
  expect_particles(stream, particles, {1, 14, 9, 2, 15, 3, 0});
  EXPECT_EQ(extra.download(stream), (std::vector<float>{1 / 8.f, 14 / 8.f, 9 / 8.f, 2 / 8.f, 15 / 8.f, 3 / 8.f, 0}));

  Particles one;
  fill(stream, one, 1, 5);
  DeviceBuffer<float> its_extra("test.extra");
  its_extra.upload(stream, {2.f});
  DeviceBuffer<float>* const its_arrays[] = {&its_extra};
  keep_and_append(stream, one, its_arrays, nullptr, packed, places);
  expect_particles(stream, one, {5, 9, 2, 15, 3, 0});
  EXPECT_EQ(its_extra.size(), 6u);
}

TEST(Packing, AllMayLeaveAndNoneMayCome) {
  const Stream& stream = test::test_stream();
  Particles particles;
  fill(stream, particles, 4);
  const BlockPlaces nothing({0, 0}, 0);
  const DeviceBuffer<std::uint32_t> nobody("none");
  keep_and_append(stream, particles, {}, &nobody, DeviceBuffer<std::byte>("none"), nothing);
  EXPECT_EQ(particles.size(), 0u);
  EXPECT_EQ(particles.momentum.size(), 0u);
  keep_and_append(stream, particles, {}, nullptr, DeviceBuffer<std::byte>("none"), nothing);
  EXPECT_EQ(particles.size(), 0u);
}

}  // namespace
}  // namespace maki
