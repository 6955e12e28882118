// Outbox and inbox against each other, without a network: chunks are lost, come twice and come in any order.
#include <gtest/gtest.h>

#include <random>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/boxes.hpp"

namespace maki::wan {
namespace {

using test::pattern;
using test::Receiver;
using test::Sender;

TEST(Boxes, UrgentMessagesOvertakeOthers) {
  Sender sender;
  sender.box.set_unmatched_limit(1 << 30);
  const auto large = pattern(200'000, 1), small = pattern(100, 2);
  const Tag plain = 5, urgent_one = urgent(5, 1), most = urgent(5, kMostUrgent);
  const auto next = [&] {
    const auto chunk = sender.box.next(0, 64 << 10, 1);
    return std::pair{chunk->frame.tag, chunk->frame.offset};
  };
  sender.send(plain, large);
  EXPECT_EQ(next(), (std::pair<Tag, std::uint64_t>{plain, 0}));
  sender.send(urgent_one, large);  // while the first is half way
  sender.send(most, large);
  sender.send(urgent_one, large);
  sender.send(plain, small);
  sender.send(most, small);
  EXPECT_EQ(next(), (std::pair<Tag, std::uint64_t>{most, 0}));  // the small ones, the more urgent one first
  EXPECT_EQ(next(), (std::pair<Tag, std::uint64_t>{plain, 0}));
  std::vector<Tag> order;
  std::vector<std::uint64_t> indices;
  while (const auto chunk = sender.box.next(0, 64 << 10, 1)) {
    if (order.empty() || order.back() != chunk->frame.tag || indices.back() != chunk->frame.index) {
      order.push_back(chunk->frame.tag);
      indices.push_back(chunk->frame.index);
    }
  }
  EXPECT_EQ(order, (std::vector<Tag>{most, urgent_one, urgent_one, plain}));
  EXPECT_EQ(indices, (std::vector<std::uint64_t>{0, 0, 1, 0}));
}

TEST(Boxes, DeliverOnceAndWholeWhateverTheStreamsDo) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    Sender sender;
    sender.box.set_unmatched_limit(1 << 20);
    Receiver receiver;
    std::vector<std::vector<std::byte>> sent, got;
    std::vector<std::shared_ptr<Operation>> sends, receives;
    for (unsigned i = 0; i < 20; ++i) {
      sent.push_back(pattern(random() % 3 == 0 ? random() % 100 : random() % 200000, i));
      got.emplace_back(sent.back().size());
    }
    for (unsigned i = 0; i < 20; ++i) sends.push_back(sender.send(i % 3, sent[i]));
    std::vector<std::shared_ptr<Chunk>> flying;
    unsigned posted = 0;
    for (int step = 0; !sender.box.empty() || posted < 20; ++step) {
      ASSERT_LT(step, 100000);
      if (posted < 20 && random() % 4 == 0) {
        receives.push_back(receiver.post(posted % 3, got[posted]));
        ++posted;
      }
      const int stream = static_cast<int>(random() % 4);
      if (auto chunk = sender.box.next(stream, 64 << 10, 4)) flying.push_back(chunk);
      if (random() % 20 == 0) sender.box.stream_lost(stream);  // what flies may still come in
      if (!flying.empty() && random() % 2 == 0) {
        const std::size_t which = random() % flying.size();
        receiver.take(*flying[which]);
        if (random() % 8 != 0) flying.erase(flying.begin() + static_cast<long>(which));
      }
      for (const auto& [tag, index] : receiver.matched) sender.box.matched(tag, index);
      receiver.matched.clear();
      if (random() % 5 == 0) sender.box.acknowledge(ReceivedSet::decode(receiver.received.encode(1 << 16)));
    }
    for (unsigned i = 0; i < 20; ++i) {
      EXPECT_TRUE(sends[i]->wait(0));
      ASSERT_TRUE(receives[i]->wait(0));
      EXPECT_EQ(receives[i]->size(), sent[i].size());
      EXPECT_TRUE(got[i] == sent[i]);
    }
    EXPECT_EQ(sender.box.bytes_outstanding(), 0u);
    EXPECT_TRUE(sender.box.empty());
  }
}

TEST(Outbox, HoldsBackWhatNobodyHasAskedForBeyondTheLimit) {
  Sender sender;
  sender.box.set_unmatched_limit(100000);
  const auto first = pattern(300000, 1), second = pattern(50000, 2);
  sender.send(1, first);
  sender.send(2, second);
  std::size_t given = 0;
  while (auto chunk = sender.box.next(0, 64 << 10, 1)) given += chunk->frame.length;
  EXPECT_GT(given, 98000u);  // each chunk counts a little more than its bytes
  EXPECT_LE(given, 100000u);
  EXPECT_FALSE(sender.box.waiting());
  sender.box.matched(2, 0);  // a later message overtakes
  const auto chunk = sender.box.next(0, 64 << 10, 1);
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->frame.tag, 2u);
  sender.box.matched(1, 0);
  given += chunk->frame.length;
  while (auto more = sender.box.next(0, 64 << 10, 1)) given += more->frame.length;
  EXPECT_EQ(given, 350000u);
  EXPECT_THROW(sender.box.matched(1, 0), ProtocolError);
}

// Nine of the ten segments of 1428 bytes and more that TCP sends before it hears of the other end, with all headers.
TEST(Outbox, PiecesForManyStreamsFitWhatOneMaySendAfterAPause) {
  Sender sender;
  sender.box.set_unmatched_limit(1 << 20);
  const auto bytes = pattern(200000, 1);
  sender.send(1, bytes);
  std::size_t given = 0;
  for (int stream = 0; const auto chunk = sender.box.next(stream, 64 << 10, 32); stream = (stream + 1) % 32) {
    EXPECT_LE(chunk->frame.length + kFrameBytes, 9u * 1428 - 100);
    given += chunk->frame.length;
  }
  EXPECT_EQ(given, bytes.size());
}

TEST(Outbox, KeepsTheBufferWhileAStreamReadsFromIt) {
  Sender sender;
  sender.box.set_unmatched_limit(1 << 20);
  const auto bytes = pattern(30000, 1);
  const auto operation = sender.send(1, bytes);
  const auto chunk = sender.box.next(0, 64 << 10, 1);
  sender.box.begin_writing(*chunk);
  ReceivedSet all;
  for (std::uint64_t i = 1; i <= 1; ++i) all.add(i);
  while (auto more = sender.box.next(0, 64 << 10, 1)) all.add(more->frame.sequence);
  sender.box.acknowledge(all);
  EXPECT_FALSE(operation->wait(0));
  sender.box.end_writing(*chunk);
  EXPECT_TRUE(operation->wait(0));
}

TEST(Outbox, RefusesAcknowledgementsOfWhatWasNeverSent) {
  Sender sender;
  ReceivedSet set;
  set.add(1);
  EXPECT_THROW(sender.box.acknowledge(set), ProtocolError);
  ReceivedSet far;
  far.add(1000);
  EXPECT_THROW(sender.box.acknowledge(far), ProtocolError);
}

TEST(Outbox, EmptyMessagesCountToo) {
  Sender sender;
  sender.box.set_unmatched_limit(100 * kUnmatchedCost);
  const std::vector<std::byte> nothing;
  for (int i = 0; i < 200; ++i) sender.send(1, nothing);
  int given = 0;
  while (sender.box.next(0, 64 << 10, 1)) ++given;
  EXPECT_EQ(given, 100);
  for (std::uint64_t i = 0; i < 50; ++i) sender.box.matched(1, i);
  while (sender.box.next(0, 64 << 10, 1)) ++given;
  EXPECT_EQ(given, 150);
}

}  // namespace
}  // namespace maki::wan
