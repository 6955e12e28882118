#include "wan/net/path/received_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

TEST(ReceivedSet, KnowsWhatCameInAnyOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    ReceivedSet set;
    std::set<std::uint64_t> truth;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t number = 1 + random() % 200;
      EXPECT_EQ(set.add(number), truth.insert(number).second);
    }
    std::uint64_t up_to = 0;
    while (truth.contains(up_to + 1)) ++up_to;
    EXPECT_EQ(set.all_up_to(), up_to);
    for (std::uint64_t number = 1; number <= 201; ++number) EXPECT_EQ(set.contains(number), truth.contains(number));
    const ReceivedSet copy = ReceivedSet::decode(set.encode(1 << 16));
    EXPECT_EQ(copy.all_up_to(), set.all_up_to());
    EXPECT_EQ(copy.ranges(), set.ranges());
  }
}

TEST(ReceivedSet, TellsTheLowestRangesWhereNotAllFit) {
  ReceivedSet set;
  for (std::uint64_t number = 2; number <= 200; number += 2) set.add(number);
  const auto bytes = set.encode(8 + 16 * 10);
  EXPECT_EQ(bytes.size(), 8u + 16 * 10);
  EXPECT_EQ(ReceivedSet::decode(bytes).ranges().rbegin()->second, 20u);
}

TEST(ReceivedSet, DoesNotGrowWithoutEnd) {
  ReceivedSet set;
  EXPECT_THROW(for (std::uint64_t number = 2;; number += 2) set.add(number), ProtocolError);
}

TEST(ReceivedSet, RefusesWhatItCannotHaveSaid) {
  EXPECT_THROW(ReceivedSet::decode({}), ProtocolError);
  ReceivedSet set;
  set.add(5);
  auto bytes = set.encode(1 << 10);
  bytes.pop_back();
  EXPECT_THROW(ReceivedSet::decode(bytes), ProtocolError);
  bytes = set.encode(1 << 10);
  bytes[8] = std::byte{1};  // a range that continues all_up_to
  EXPECT_THROW(ReceivedSet::decode(bytes), ProtocolError);
  bytes[8] = std::byte{9};  // ends before it begins
  EXPECT_THROW(ReceivedSet::decode(bytes), ProtocolError);
}

}  // namespace
}  // namespace maki::wan
