#include "wan/sites/sites.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "wan/sites/ring.hpp"

namespace maki::sites {
namespace {

Message bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Message(bytes.begin(), bytes.end());
}

// All sites of a ring, each of one rank, driven by this thread.
std::vector<std::unique_ptr<Sites>> make_sites(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("site" + std::to_string(i));
  std::vector<std::unique_ptr<Sites>> sites;
  for (auto& ring : make_memory_rings(count))
    sites.push_back(std::make_unique<Sites>(std::move(ring), names, Communicator::self()));
  return sites;
}

TEST(Sites, KnowTheirPlacesAndNeighbours) {
  const auto sites = make_sites(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sites[i]->me(), i);
    EXPECT_EQ(sites[i]->count(), 3);
    EXPECT_EQ(sites[i]->right(), (i + 1) % 3);
    EXPECT_EQ(sites[i]->left(), (i + 2) % 3);
    EXPECT_EQ(sites[i]->name(2), "site2");
  }
  const auto two = make_sites(2);
  EXPECT_EQ(two[0]->left(), two[0]->right());
}

TEST(Sites, CollectWhatAllHavePublishedUnderANumber) {
  const auto sites = make_sites(3);
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

TEST(Sites, WhatIsOutOfStepIsAnError) {
  const auto sites = make_sites(2);
  sites[0]->publish(Phase::kSums, 4, bytes_of("four"));
  sites[1]->publish(Phase::kSums, 5, bytes_of("five"));
  EXPECT_THROW(sites[0]->collect(Phase::kSums, 4), Error);
}

TEST(Sites, PartsComeInPiecesAndWhole) {
  for (std::size_t piece : {1, 3, 100}) {
    const auto sites = make_sites(3);
    for (const auto& site : sites) site->set_piece(piece);
    sites[0]->send_parts(2, Phase::kTrees, 1, bytes_of("to the left"));
    sites[0]->publish_parts(Phase::kTrees, 2, bytes_of(""));
    sites[0]->publish_parts(Phase::kMesh, 1, bytes_of("to all"));
    EXPECT_EQ(sites[2]->receive_parts(0, Phase::kTrees, 1), std::vector<Message>{bytes_of("to the left")});
    for (int i : {1, 2}) {
      EXPECT_EQ(sites[i]->receive_parts(0, Phase::kMesh, 1), std::vector<Message>{bytes_of("to all")});
      EXPECT_EQ(sites[i]->receive_shares(0, Phase::kTrees, 2), std::vector<Message>{bytes_of("")});
    }
  }
}

TEST(Sites, WhatIsNoListOfPartsIsRefused) {
  for (const std::string& text : {std::string(), std::string("abc"), std::string(8, '\0'), std::string(16, '\xff')}) {
    const auto sites = make_sites(2);
    sites[0]->ring()->send(1, Phase::kTrees, 1, bytes_of(text));
    EXPECT_THROW(sites[1]->receive_parts(0, Phase::kTrees, 1), Error) << text.size();
  }
}

TEST(Sites, CountTraffic) {
  const auto sites = make_sites(2);
  sites[0]->publish(Phase::kSums, 1, bytes_of("12345"));
  sites[1]->publish(Phase::kSums, 1, bytes_of("123"));
  sites[1]->collect(Phase::kSums, 1);
  const Traffic sums = sites[1]->take_traffic()[static_cast<std::size_t>(Phase::kSums)];
  EXPECT_EQ(sums.bytes_sent, 3u);
  EXPECT_EQ(sums.bytes_received, 5u);
  EXPECT_EQ(sites[1]->take_traffic()[static_cast<std::size_t>(Phase::kSums)].bytes_sent, 0u);
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

}  // namespace
}  // namespace maki::sites
