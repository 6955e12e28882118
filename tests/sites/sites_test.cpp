// Sites over rings in memory; all sites' particles at one site.
#include "wan/sites/sites.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tests/kernels/tree/tree_set.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "tests/wan/helpers.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki::sites {
namespace {

using maki::test::sites_in_memory;

Message bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Message(bytes.begin(), bytes.end());
}

TEST(Sites, KnowTheirPlacesAndNeighbours) {
  const auto sites = sites_in_memory(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sites[i]->me(), i);
    EXPECT_EQ(sites[i]->count(), 3);
    EXPECT_EQ(sites[i]->right(), (i + 1) % 3);
    EXPECT_EQ(sites[i]->left(), (i + 2) % 3);
    EXPECT_EQ(sites[i]->name(2), "site2");
  }
  const auto two = sites_in_memory(2);
  EXPECT_EQ(two[0]->left(), two[0]->right());
}

TEST(Sites, CollectWhatAllHavePublishedUnderANumber) {
  const auto sites = sites_in_memory(3);
  for (std::uint64_t number : {7u, 8u})
    for (const auto& site : sites)
      site->publish(Phase::kSums, number, bytes_of(site->name(site->me()) + " at " + std::to_string(number)));
  for (const auto& site : sites) {
    for (std::uint64_t number : {7u, 8u}) {
      const auto all = site->collect(Phase::kSums, number);
      ASSERT_EQ(all.size(), 3u);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(all[i], bytes_of(site->name(i) + " at " + std::to_string(number)));
    }
    EXPECT_THROW(site->collect(Phase::kSums, 8), Error);
  }
}

TEST(Sites, WhatIsNoListOfPartsIsRefused) {
  for (const std::string& text : {std::string(), std::string("abc"), std::string(8, '\0'), std::string(16, '\xff')}) {
    const auto sites = sites_in_memory(2);
    sites[0]->ring()->send(1, Phase::kTrees, 1, bytes_of(text));
    EXPECT_THROW(sites[1]->receive_parts(0, Phase::kTrees, 1), Error) << text.size();
  }
}

TEST(Sites, ARingOfAnotherCountIsRefused) {
  auto rings = make_memory_rings(3);
  EXPECT_THROW(Sites(std::move(rings[0]), {"a", "b"}, Communicator::self()), Error);
  EXPECT_THROW(Sites(nullptr, {"a", "b"}, Communicator::self()), Error);
}

TEST(Sites, ValuesOfAnotherSizeAreRefused) {
  EXPECT_EQ(value_of<int>(bytes_of(std::string(4, '\1'))), 0x01010101);
  EXPECT_THROW(value_of<int>(bytes_of("abc")), Error);
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
        auto set = maki::testing::uniform_set(5000, 7);
        for (std::size_t i = 0; i < set.size(); ++i)
          set[i].mass = equal ? 0.125f : 1 + 1e-3f * static_cast<float>(i % 100);
        maki::test::replay_sites(count, [&](Sites& sites) {
          const Stream& stream = maki::test::test_stream();
          const auto own = of_site(set, sites.me(), count, empty_last);
          const maki::test::OnDevice mine(own);
          const GatheredSet all(sites, stream, mine);
          EXPECT_EQ(all.place(), 0);
          EXPECT_EQ(all.here(), sites.me() == 0);
          const auto traffic = sites.take_traffic()[static_cast<std::size_t>(Phase::kOutput)];
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

TEST(GatheredSet, FewerParticlesThanWereAnnouncedAreRefused) {
  const auto call = [](Sites& sites) {
    const Stream& stream = maki::test::test_stream();
    const std::vector<SourceParticle> own(5 + static_cast<std::size_t>(sites.me()), {1, 2, 3, 0.5f});
    const maki::test::OnDevice mine(own);
    const GatheredSet all(sites, stream, mine);
  };
  ReplayRing::Sent sent = maki::test::replay_sites(2, call);
  const std::uint64_t announced[2] = {8, 8};  // particles of the site, and of its fullest rank
  std::memcpy(sent[{0, 1, static_cast<int>(Phase::kOutput)}].front().second.data(), announced, sizeof announced);
  Sites north(std::make_unique<ReplayRing>(sent, 2, 0), maki::test::replayed_names(2), Communicator::self());
  const std::string text = wan::test::error_of<Error>([&] { call(north); });
  EXPECT_TRUE(wan::test::says(text, "site east sends other particles than it has (6 have come of 8)"));
}

// More than the window of messages under way holds.
TEST(GatheredSet, TakesManyPieces) {
  const std::size_t n = (std::size_t{1} << 19) * 9 + 5;
  maki::test::replay_sites(2, [&](Sites& sites) {
    const Stream& stream = maki::test::test_stream();
    std::vector<SourceParticle> own(sites.me() == 1 ? n : 0);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = {static_cast<std::uint32_t>(i), 1, 2, 3};
    const maki::test::OnDevice mine(own);
    const GatheredSet all(sites, stream, mine);
    if (!all.here()) return;
    const auto share = all.share().download(stream);
    ASSERT_EQ(share.size(), n);
    for (std::size_t i = 0; i < n; i += 12345) ASSERT_EQ(share[i].x, i);
    EXPECT_EQ(share.back().x, n - 1);
    EXPECT_EQ(share.back().mass, 3);
  });
}

}  // namespace
}  // namespace maki::sites
