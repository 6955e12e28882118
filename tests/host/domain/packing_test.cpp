#include "host/domain/migrate.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "host/domain/multisection.hpp"
#include "tests/host/domain/fields.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

// Particles of the ids first to end, and their two extra arrays.
struct Set {
  const Stream& stream = test::test_stream();
  Particles particles;
  std::vector<DeviceBuffer<float>> extra;
  std::vector<DeviceBuffer<float>*> arrays;

  Set(std::uint64_t first, std::uint64_t end) {
    std::vector<std::uint64_t> ids(end - first);
    std::iota(ids.begin(), ids.end(), first);
    test::make_particles(stream, ids, particles, extra);
    for (auto& array : extra) arrays.push_back(&array);
  }
  void expect(const std::vector<std::uint64_t>& ids) const {
    EXPECT_EQ(particles.id.download(stream), ids);
    test::expect_fields_of_ids(stream, particles, extra);
  }
};

TEST(Packing, BlocksStandAlignedOneAfterAnother) {
  const BlockPlaces places({3, 0, 1}, 2);
  EXPECT_EQ(places.particle_bytes, 50u);
  EXPECT_EQ(places.first, (std::vector<std::uint64_t>{0, 3, 3, 4}));
  EXPECT_EQ(places.begin, (std::vector<std::uint64_t>{0, 160, 160, 224}));
  EXPECT_EQ(places.bytes(0), 150u);
  EXPECT_EQ(places.bytes(1), 0u);
}

// Of four slabs, the second.
TEST(Packing, LeaversAreSortedByOwnerAndTheOthersStayInOrder) {
  const Set set(0, 40);
  const Domains domains({4, 1, 1});
  DeviceBuffer<std::uint32_t> starts("test.starts");
  starts.upload(set.stream, {domains.starts().begin(), domains.starts().end()});
  const Leavers leavers = select_leavers(set.stream, set.particles, domains.view_of(starts.data()), 1);
  std::vector<std::uint64_t> counts(4, 0);
  std::vector<std::uint32_t> staying, leaving;
  for (std::uint32_t owner = 0; owner < 4; ++owner)
    for (std::uint32_t i = 0; i < 40; ++i) {
      if (test::fields_of(i).source.x >> 30 != owner) continue;
      (owner == 1 ? staying : leaving).push_back(i);
      counts[owner] += owner != 1;
    }
  EXPECT_EQ(leavers.counts, counts);
  EXPECT_EQ(leavers.staying.download(set.stream), staying);
  EXPECT_EQ(leavers.index.download(set.stream), leaving);
}

TEST(Packing, WhatIsPackedIsAppendedUnchanged) {
  Set set(0, 16), one(5, 6);
  DeviceBuffer<std::uint32_t> chosen("test.chosen"), staying("test.staying");
  chosen.upload(set.stream, {9, 2, 15, 3, 0});
  staying.upload(set.stream, {1, 14});
  const BlockPlaces places({2, 0, 3}, 2);
  const DeviceBuffer<std::byte> packed = pack(set.stream, set.particles, set.arrays, chosen, places);
  EXPECT_EQ(packed.size(), places.size());
  keep_and_append(set.stream, set.particles, set.arrays, &staying, packed, places);
  set.expect({1, 14, 9, 2, 15, 3, 0});
  keep_and_append(set.stream, one.particles, one.arrays, nullptr, packed, places);
  one.expect({5, 9, 2, 15, 3, 0});
}

TEST(Packing, AllMayLeaveAndNoneMayCome) {
  Set set(0, 4);
  const BlockPlaces nothing({0, 0}, 0);
  const DeviceBuffer<std::uint32_t> nobody("none");
  for (const DeviceBuffer<std::uint32_t>* staying : {&nobody, static_cast<decltype(&nobody)>(nullptr)}) {
    keep_and_append(set.stream, set.particles, {}, staying, DeviceBuffer<std::byte>("none"), nothing);
    EXPECT_EQ(set.particles.size(), 0u);
    EXPECT_EQ(set.particles.momentum.size(), 0u);
  }
}

}  // namespace
}  // namespace maki
