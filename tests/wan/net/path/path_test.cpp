// Messages over a path, both ends in this process.
#include <gtest/gtest.h>

#include <thread>

#include "tests/wan/net/path/pair.hpp"

namespace maki::wan {
namespace {

using test::comes_true, test::pattern;

// Streams, and with TLS or not.
class PathOf : public testing::TestWithParam<std::pair<int, bool>> {
 protected:
  test::TemporaryFolder folder_;
  test::Pair pair_{test::streams(GetParam().first), GetParam().second ? test::new_key(folder_) : test::insecure()};
};

INSTANTIATE_TEST_SUITE_P(
    Streams, PathOf, testing::Values(std::pair{1, false}, std::pair{1, true}, std::pair{4, false}, std::pair{16, true}),
    [](const auto& info) { return std::to_string(info.param.first) + (info.param.second ? "Encrypted" : "Plain"); });

TEST_P(PathOf, CarriesMessagesOfAllSizes) {
  for (const std::size_t size :
       {0u, 1u, 8u, 4095u, 4096u, 4097u, 16383u, 16384u, 65535u, 65536u, 65537u, 1000000u, 20000001u}) {
    const auto sent = pattern(size, 1);
    std::vector<std::byte> got(size);
    Request receive = pair_.there.start_receive(7, got);
    pair_.here.send(7, sent);
    receive.wait();
    EXPECT_EQ(receive.size(), size);
    EXPECT_TRUE(got == sent) << size;
  }
}

TEST_P(PathOf, SendsBothWaysAtOnce) {
  const auto one = pattern(30000000, 1), two = pattern(20000000, 2);
  std::vector<std::byte> got_one(one.size()), got_two(two.size());
  std::thread other([&] { EXPECT_EQ(pair_.there.send_receive(3, two, got_one), one.size()); });
  EXPECT_EQ(pair_.here.send_receive(3, one, got_two), two.size());
  other.join();
  EXPECT_TRUE(got_one == one);
  EXPECT_TRUE(got_two == two);
}

TEST_P(PathOf, ReceivesWhatCameBeforeItWasAskedForAndOfUnknownSize) {
  const auto sent = pattern(5000000, 3);
  Request send = pair_.here.start_send(1, sent);
  pair_.here.send(2, pattern(100, 4));
  EXPECT_TRUE(std::ranges::equal(pair_.there.receive_any(2, 1000).view(), pattern(100, 4)));  // overtakes
  send.wait();
  EXPECT_TRUE(std::ranges::equal(pair_.there.receive_any(1, sent.size()).view(), sent));
}

TEST_P(PathOf, KeepsTheOrderWithinATag) {
  constexpr unsigned kCount = 300;
  std::vector<std::vector<std::byte>> sent, got(kCount);
  std::vector<Request> sends, receives;
  for (unsigned i = 0; i < kCount; ++i) sent.push_back(pattern((i * 7919) % 150000, i));
  for (unsigned i = 0; i < kCount; ++i) {
    got[i].resize(sent[i].size());
    sends.push_back(pair_.here.start_send(i % 5, sent[i]));
  }
  for (unsigned i = 0; i < kCount; ++i) receives.push_back(pair_.there.start_receive(i % 5, got[i]));
  for (auto& request : sends) request.wait();
  for (auto& request : receives) request.wait();
  for (unsigned i = 0; i < kCount; ++i) EXPECT_TRUE(got[i] == sent[i]) << i;
}

TEST_P(PathOf, ManySmallOnesBackAndForth) {
  std::thread other([&] {
    std::uint64_t number = 0;
    for (int i = 0; i < 500; ++i) {
      pair_.there.receive(1, std::as_writable_bytes(std::span(&number, 1)));
      ++number;
      pair_.there.send(1, std::as_bytes(std::span(&number, 1)));
    }
  });
  std::uint64_t number = 0;
  for (int i = 0; i < 500; ++i) {
    pair_.here.send(1, std::as_bytes(std::span(&number, 1)));
    pair_.here.receive(1, std::as_writable_bytes(std::span(&number, 1)));
  }
  other.join();
  EXPECT_EQ(number, 500u);
}

TEST(Path, MessagesBeyondTheMemoryForUnmatchedDataWaitForTheirReceive) {
  PathSettings settings = test::streams(4);
  settings.unmatched_limit = 1 << 20;
  test::Pair pair(settings);
  const auto sent = pattern(30000000, 3);
  Request send = pair.here.start_send(1, sent);
  EXPECT_FALSE(send.wait_for(0.2));
  pair.here.send(2, pattern(100, 4));
  Request other = pair.there.start_receive_any(2, 1000);
  EXPECT_FALSE(other.wait_for(0.1));  // the account is used up
  std::vector<std::byte> got(sent.size());
  EXPECT_EQ(pair.there.receive(1, got), sent.size());
  EXPECT_TRUE(got == sent);
  send.wait();
  other.wait();
}

TEST(Path, AMessageThatDoesNotFitFailsThatReceiveOnly) {
  test::Pair pair(test::streams(2));
  std::vector<std::byte> small(1000);
  Request receive = pair.there.start_receive(1, small);
  pair.here.send(1, pattern(2000000, 1));
  EXPECT_THROW(receive.wait(), Error);
  pair.here.send(1, pattern(900, 2));
  EXPECT_EQ(pair.there.receive(1, small), 900u);
}

TEST(Path, ClosingDeliversWhatWasSent) {
  test::Pair pair(test::streams(4));
  const auto sent = pattern(10000000, 1);
  Request send = pair.here.start_send(1, sent);
  EXPECT_TRUE(pair.here.close(30));
  send.wait();
  EXPECT_TRUE(std::ranges::equal(pair.there.receive_any(1, sent.size()).view(), sent));
  EXPECT_THROW(pair.there.receive_any(1, 10), PathError);
  EXPECT_THROW(pair.there.send(1, sent), PathError);
}

TEST(Path, TellsAWaitingReceiveThatThePeerHasClosed) {
  test::Pair pair(test::streams(2));
  std::vector<std::byte> buffer(10);
  Request receive = pair.there.start_receive(1, buffer);
  pair.here.close(5);
  EXPECT_THROW(receive.wait(), PathError);
}

TEST(Path, PacingHoldsTheRate) {
  PathSettings settings = test::streams(4);
  settings.pacing_rate = 20e6;
  test::Pair pair(settings);
  const auto sent = pattern(5000000, 1);
  std::vector<std::byte> got(sent.size());
  const auto start = std::chrono::steady_clock::now();
  Request receive = pair.there.start_receive(1, got);
  pair.here.send(1, sent);
  receive.wait();
  EXPECT_GT(std::chrono::duration<double>(receive.done_at() - start).count(), 0.2);
}

TEST(Path, ManyStreams) {
  test::TemporaryFolder folder;
  test::Pair pair(test::streams(256), test::new_key(folder));
  EXPECT_TRUE(comes_true([&] { return pair.here.status().streams_up == 256; }));
  const auto sent = pattern(40000000, 1);
  std::vector<std::byte> got(sent.size());
  Request receive = pair.there.start_receive(1, got);
  pair.here.send(1, sent);
  receive.wait();
  EXPECT_TRUE(got == sent);
}

}  // namespace
}  // namespace maki::wan
