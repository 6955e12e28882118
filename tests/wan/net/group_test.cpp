// Calls over several paths at once.
#include "wan/net/group.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/wan/net/path/pair.hpp"

namespace maki::wan {
namespace {

using test::Pair;
using test::pattern;

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST(Group, CycleGoesRoundARing) {
  // 0 -> 1 -> 2 -> 0
  std::vector<std::unique_ptr<Pair>> link;
  for (int i = 0; i < 3; ++i) link.push_back(std::make_unique<Pair>(test::streams(2)));
  std::vector<std::future<std::vector<std::byte>>> sites;
  for (std::size_t i = 0; i < 3; ++i) {
    sites.push_back(std::async(std::launch::async, [&, i] {
      std::vector<std::byte> buffer(1000000);
      buffer.resize(cycle(link[i]->here, link[(i + 2) % 3]->there, 7,
                          pattern(700000 + 1000 * i, static_cast<unsigned>(i)), buffer));
      const Bytes more =
          cycle_any(link[i]->here, link[(i + 2) % 3]->there, 7, pattern(10 + i, static_cast<unsigned>(i)), 100);
      EXPECT_TRUE(same(more.view(), pattern(10 + (i + 2) % 3, static_cast<unsigned>((i + 2) % 3))));
      return buffer;
    }));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t from = (i + 2) % 3;
    EXPECT_EQ(sites[i].get(), pattern(700000 + 1000 * from, static_cast<unsigned>(from)));
  }
}

TEST(Group, ScatterAndGather) {
  constexpr std::size_t kPaths = 5;
  std::vector<std::unique_ptr<Pair>> link;
  std::vector<Path*> here;
  std::vector<std::vector<std::byte>> parts, room(kPaths, std::vector<std::byte>(300000));
  std::vector<std::span<const std::byte>> out;
  std::vector<std::span<std::byte>> in;
  for (std::size_t i = 0; i < kPaths; ++i) {
    link.push_back(std::make_unique<Pair>(test::streams(1)));
    here.push_back(&link.back()->here);
    parts.push_back(pattern(60000 * i, static_cast<unsigned>(i)));  // the first is empty
  }
  for (std::size_t i = 0; i < kPaths; ++i) {
    out.push_back(parts[i]);
    in.push_back(room[i]);
  }
  std::vector<std::future<void>> far;
  for (std::size_t i = 0; i < kPaths; ++i) {
    far.push_back(std::async(std::launch::async, [&, i] {  // sends back what came
      const Bytes came = link[i]->there.receive_any(3, 1 << 20);
      link[i]->there.send(4, came.view());
    }));
  }
  scatter(here, 3, out);
  const auto sizes = gather(here, 4, in);
  for (auto& one : far) one.get();
  ASSERT_EQ(sizes.size(), kPaths);
  for (std::size_t i = 0; i < kPaths; ++i) {
    EXPECT_EQ(sizes[i], parts[i].size());
    EXPECT_TRUE(same(std::span(room[i]).first(sizes[i]), parts[i]));
  }
  EXPECT_THROW(scatter(std::span(here).first(2), 3, out), Error);
}

// The buffers are free again when the error comes.
TEST(Group, ALostPathIsToldWhenTheOthersAreDone) {
  Pair a(test::streams(1)), b(test::streams(1));
  a.there.close(5);
  std::vector<std::byte> buffer(100);
  auto sender = std::async(std::launch::async, [&] { b.there.send(1, pattern(100, 3)); });
  EXPECT_THROW(cycle(a.here, b.here, 1, pattern(200000, 1), buffer), PathError);
  EXPECT_EQ(buffer, pattern(100, 3));
  sender.get();
}

TEST(Group, RelayPassesOnBothWaysInOrderUntilOneSideCloses) {
  Pair left(test::streams(2)), right(test::streams(2));
  const std::vector<Tag> tags{5, 6};
  auto relaying = std::async(std::launch::async, [&] { relay(left.there, right.there, tags, 1 << 20); });
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
  for (const Tag tag : tags) {
    senders.push_back(
        std::async(std::launch::async, [&, tag] { send_all(left.here, tag, 100 * static_cast<unsigned>(tag)); }));
    senders.push_back(
        std::async(std::launch::async, [&, tag] { send_all(right.here, tag, 1000 * static_cast<unsigned>(tag)); }));
  }
  for (const Tag tag : tags) {
    EXPECT_TRUE(all_came(right.here, tag, 100 * static_cast<unsigned>(tag)));
    EXPECT_TRUE(all_came(left.here, tag, 1000 * static_cast<unsigned>(tag)));
  }
  for (auto& one : senders) one.get();
  // What was sent before the end is still passed on.
  left.here.send(5, pattern(77, 1));
  left.here.close(5);
  EXPECT_NO_THROW(relaying.get());
  EXPECT_TRUE(same(right.here.receive_any(5, 100).view(), pattern(77, 1)));
}

TEST(Group, RelayStopsWhenAsked) {
  Pair left(test::streams(1)), right(test::streams(1));
  std::atomic<bool> stop{false};
  const std::vector<RelayLane> lanes{{&left.there, 1, &right.there, 2}};
  auto relaying = std::async(std::launch::async, [&] { relay(lanes, 1 << 20, [&] { return stop.load(); }); });
  left.here.send(1, pattern(10, 1));
  EXPECT_TRUE(same(right.here.receive_any(2, 100).view(), pattern(10, 1)));  // under the other tag
  stop = true;
  EXPECT_NO_THROW(relaying.get());
}

}  // namespace
}  // namespace maki::wan
