// All sites' particles over the ranks of one site.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "host/measure/spectra.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/test_stream.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {
namespace {

std::vector<SourceParticle> random_set(std::size_t n) {
  std::mt19937 random(11);
  std::vector<SourceParticle> set(n);
  for (SourceParticle& p : set)
    p = {static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random()),
         static_cast<std::uint32_t>(random()), 2};
  return set;
}

// Two sites of all ranks each; every rank of a site has another number of its particles.
TEST(GatheredSetRanks, IsSharedOutByPlaceAndMeasuredAsOneSet) {
  const Communicator ranks = Communicator::world();
  const auto set = random_set(3000);
  const auto size = static_cast<std::size_t>(ranks.size()), rank = static_cast<std::size_t>(ranks.rank());
  const Stream& stream = test::test_stream();
  DeviceBuffer<SourceParticle> whole("test.particles");
  whole.upload(stream, set);
  MeasurePowerOptions power;
  power.cells = 16;
  ProjectionOptions picture;
  picture.width = picture.height = 16;
  const MeasuredPower expected = measure_power(stream, whole.data(), whole.size(), power);
  const std::vector<double> drawn = project_density(stream, whole.data(), whole.size(), picture);
  test::replay_sites(
      2,
      [&](sites::Sites& sites) {
        std::vector<SourceParticle> own;
        for (std::size_t i = 0; i < set.size(); ++i) {
          const bool mine = (set[i].x >> 31) == static_cast<std::uint32_t>(sites.me());
          if (mine && (i * i) % size == rank) own.push_back(set[i]);
        }
        DeviceBuffer<SourceParticle> mine("test.particles");
        mine.upload(stream, own);
        const sites::GatheredSet all(sites, stream, mine);
        EXPECT_EQ(all.here(), sites.me() == 0);
        if (!all.here()) return;
        for (const SourceParticle& p : all.share().download(stream)) ASSERT_EQ(p.x * std::uint64_t{size} >> 32, rank);
        const MeasuredPower measured = measure_power(ranks, stream, all.share().data(), all.share().size(), power);
        ASSERT_EQ(measured.bins.size(), expected.bins.size());
        for (std::size_t i = 0; i < expected.bins.size(); ++i) {
          EXPECT_EQ(measured.bins[i].modes, expected.bins[i].modes);
          EXPECT_NEAR(measured.bins[i].power, expected.bins[i].power, 1e-5 * expected.bins[i].power);
        }
        EXPECT_EQ(project_density(ranks, stream, all.share().data(), all.share().size(), picture), drawn);
      },
      ranks);
}

TEST(GatheredSetRanks, FromSiteGivesOneMessageToAllRanksOfAllSites) {
  const Communicator ranks = Communicator::world();
  test::replay_sites(
      3,
      [&](sites::Sites& sites) {
        const sites::Message mine(static_cast<std::size_t>(5 + sites.me()), static_cast<std::byte>(ranks.rank()));
        EXPECT_EQ(sites::from_site(sites, 1, mine), sites::Message(6, std::byte{0}));
      },
      ranks);
}

}  // namespace
}  // namespace maki
