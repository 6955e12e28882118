// All sites' particles at one site, and what is measured of them there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>

#include "kernels/measure/power_spectrum.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/test_stream.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {
namespace {

std::vector<SourceParticle> random_set(std::size_t n, bool equal_masses) {
  std::mt19937 random(7);
  std::vector<SourceParticle> set;
  for (std::size_t i = 0; i < n; ++i) {
    const float mass = equal_masses ? 0.125f : 1 + 1e-3f * static_cast<float>(i % 100);
    set.push_back({static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random()),
                   static_cast<std::uint32_t>(random()), mass});
  }
  return set;
}

// Those in the slab of one of `count` sites; the last site is left without any where `empty_last`.
std::vector<SourceParticle> of_site(const std::vector<SourceParticle>& set, int site, int count, bool empty_last) {
  const int filled = empty_last ? count - 1 : count;
  std::vector<SourceParticle> mine;
  for (const SourceParticle& p : set)
    if (static_cast<int>((std::uint64_t{p.x} * static_cast<std::uint64_t>(filled)) >> 32) == site) mine.push_back(p);
  return mine;
}

std::vector<std::array<std::uint32_t, 4>> sorted(const std::vector<SourceParticle>& set) {
  std::vector<std::array<std::uint32_t, 4>> rows;
  for (const SourceParticle& p : set) rows.push_back({p.x, p.y, p.z, std::bit_cast<std::uint32_t>(p.mass)});
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(GatheredSet, HasAllParticlesAtOneSite) {
  for (const int count : {1, 2, 3}) {
    for (const bool equal : {true, false}) {
      for (const bool empty_last : {false, true}) {
        if (count == 1 && empty_last) continue;
        const auto set = random_set(5000, equal);
        test::replay_sites(count, [&](sites::Sites& sites) {
          const Stream& stream = test::test_stream();
          DeviceBuffer<SourceParticle> mine("test.particles");
          const auto own = of_site(set, sites.me(), count, empty_last);
          mine.upload(stream, own);
          const sites::GatheredSet all(sites, stream, mine);
          EXPECT_EQ(all.place(), 0);
          EXPECT_EQ(all.here(), sites.me() == 0);
          const auto traffic = sites.take_traffic()[static_cast<std::size_t>(sites::Phase::kOutput)];
          if (all.here()) {
            EXPECT_EQ(sorted(all.share().download(stream)), sorted(set));
          } else {
            EXPECT_EQ(all.share().size(), 0u);
            EXPECT_LT(traffic.bytes_sent, own.size() * (equal ? 12 : 16) + 300);
          }
        });
      }
    }
  }
}

// More than the window of messages under way holds.
TEST(GatheredSet, TakesManyPieces) {
  const std::size_t n = (std::size_t{1} << 19) * 9 + 5;
  test::replay_sites(2, [&](sites::Sites& sites) {
    const Stream& stream = test::test_stream();
    DeviceBuffer<SourceParticle> mine("test.particles");
    std::vector<SourceParticle> own(sites.me() == 1 ? n : 0);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = {static_cast<std::uint32_t>(i), 1, 2, 3};
    mine.upload(stream, own);
    const sites::GatheredSet all(sites, stream, mine);
    if (!all.here()) return;
    const auto share = all.share().download(stream);
    ASSERT_EQ(share.size(), n);
    for (std::size_t i = 0; i < n; i += 12345) ASSERT_EQ(share[i].x, i);
    EXPECT_EQ(share.back().x, n - 1);
    EXPECT_EQ(share.back().mass, 3);
  });
}

TEST(GatheredSet, GivesThePowerSpectrumOfOneSiteBitByBit) {
  const auto set = random_set(20000, true);
  MeasurePowerOptions options;
  options.cells = 32;
  const Stream& stream = test::test_stream();
  DeviceBuffer<SourceParticle> whole("test.particles");
  whole.upload(stream, set);
  const MeasuredPower expected = measure_power(stream, whole.data(), whole.size(), options);
  test::replay_sites(3, [&](sites::Sites& sites) {
    const Stream& own_stream = test::test_stream();
    DeviceBuffer<SourceParticle> mine("test.particles");
    mine.upload(own_stream, of_site(set, sites.me(), 3, false));
    const sites::GatheredSet all(sites, own_stream, mine);
    if (!all.here()) return;
    const MeasuredPower measured = measure_power(own_stream, all.share().data(), all.share().size(), options);
    ASSERT_EQ(measured.bins.size(), expected.bins.size());
    for (std::size_t i = 0; i < expected.bins.size(); ++i) {
      EXPECT_EQ(measured.bins[i].k, expected.bins[i].k);
      EXPECT_EQ(measured.bins[i].power, expected.bins[i].power);
      EXPECT_EQ(measured.bins[i].modes, expected.bins[i].modes);
    }
    EXPECT_DOUBLE_EQ(measured.shot_noise, expected.shot_noise);
  });
}

TEST(FromSite, GivesOneSitesMessageToAll) {
  test::replay_sites(3, [](sites::Sites& sites) {
    for (const int from : {2, 0}) {
      sites::Message mine(static_cast<std::size_t>(10 + sites.me()), static_cast<std::byte>(sites.me()));
      const sites::Message message = sites::from_site(sites, from, mine);
      EXPECT_EQ(message, sites::Message(static_cast<std::size_t>(10 + from), static_cast<std::byte>(from)));
    }
  });
}

}  // namespace
}  // namespace maki
