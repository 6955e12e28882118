// Messages over channels: parts of a buffer, and lanes that are passed on.
#include "wan/net/mpw/transfer.hpp"

#include <gtest/gtest.h>

#include <future>

#include "tests/wan/net/path/pair.hpp"
#include "tests/wan/net/secure/service.hpp"
#include "wan/net/path/held_memory.hpp"

namespace maki::wan::mpw {
namespace {

using test::Pair;
using test::pattern;

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST(Split, PartsDifferByOneByteAtMost) {
  char bytes[20];
  const auto parts = split(bytes, 20, 6);
  const std::size_t sizes[] = {4, 4, 3, 3, 3, 3};
  char* at = bytes;
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(parts[i].size, sizes[i]);
    EXPECT_EQ(parts[i].data, at);
    at += sizes[i];
  }
  EXPECT_EQ(split(nullptr, 0, 3).size(), 3u);
  EXPECT_THROW(split(nullptr, 1, 1), Error);
  EXPECT_THROW(split(bytes, -1, 1), Error);
  EXPECT_THROW(split(bytes, 1, 0), Error);
}

// What came and was not read goes with the last channel, though a closed channel keeps its link.
TEST(Link, AClosedOneHoldsNothing) {
  ASSERT_TRUE(test::comes_true([] { return HeldMemory::peers() == 0; }));
  Pair pair(test::streams(1));
  const auto memory = HeldMemory::of("127.0.0.1");
  Link link(std::move(pair.there), nullptr, 2);
  pair.here.send(5, pattern(100000, 1));  // too long to be copied: returns when it has come
  link.leave();
  EXPECT_TRUE(link.live());
  EXPECT_GT(memory->bytes(), 100000u);
  link.leave();
  EXPECT_FALSE(link.live());
  EXPECT_TRUE(test::comes_true([&] { return memory->bytes() == 0; }));
  EXPECT_THROW(link.path(), PathError);
}

// Another thread that is in a call has the path until the call ends.
TEST(Link, ClosedUnderACallItEndsTheCall) {
  Pair pair(test::streams(1));
  Link link(std::move(pair.there), nullptr, 1);
  const auto path = link.path();
  Request coming = path->start_receive_any(5, 100);
  link.leave();
  EXPECT_THROW(coming.wait(), PathError);
  EXPECT_THROW(path->receive_any(5, 100), PathError);
}

TEST(RelayOfLanes, PassesOnBothWaysInOrderUntilOneSideCloses) {
  Pair left(test::streams(2)), right(test::streams(2));
  const auto left_link = std::make_shared<Link>(std::move(left.there), nullptr, 2);
  const auto right_link = std::make_shared<Link>(std::move(right.there), nullptr, 2);
  const std::vector<Lane> one{{left_link, 5, 0}, {left_link, 6, 1}}, other{{right_link, 5, 0}, {right_link, 7, 1}};
  auto relaying = std::async(std::launch::async, [&] { relay(one, other, 1 << 20); });
  const auto send_all = [](Path& path, Tag tag, unsigned seed) {
    for (unsigned i = 0; i < 40; ++i) path.send(tag, pattern(i % 3 == 0 ? 200000 : i, seed + i));
  };
  const auto all_came = [](Path& path, Tag tag, unsigned seed) {
    for (unsigned i = 0; i < 40; ++i) {
      if (!same(path.receive_any(tag, 1 << 20).view(), pattern(i % 3 == 0 ? 200000 : i, seed + i))) return false;
    }
    return true;
  };
  std::vector<std::future<void>> senders;
  for (std::size_t i = 0; i < 2; ++i) {
    senders.push_back(std::async(std::launch::async, [&, i] { send_all(left.here, one[i].tag, 500); }));
    senders.push_back(std::async(std::launch::async, [&, i] { send_all(right.here, other[i].tag, 5000); }));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(all_came(right.here, other[i].tag, 500));
    EXPECT_TRUE(all_came(left.here, one[i].tag, 5000));
  }
  for (auto& one : senders) one.get();
  // What was sent before the end is still passed on.
  left.here.send(5, pattern(77, 1));
  left.here.close(5);
  EXPECT_NO_THROW(relaying.get());
  EXPECT_TRUE(same(right.here.receive_any(5, 100).view(), pattern(77, 1)));
}

}  // namespace
}  // namespace maki::wan::mpw
