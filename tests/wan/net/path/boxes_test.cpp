// Outbox and inbox without a network, against each other (chunks are lost, come twice and come in any order) and alone:
// contradictions, floods, and the memory that they take.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "wan/net/path.hpp"
#include "wan/net/path/boxes.hpp"

namespace maki::wan {
namespace {

using test::pattern;

struct Sender {
  explicit Sender(std::uint64_t unmatched_limit = 1 << 20) { box.set_unmatched_limit(unmatched_limit); }
  Outbox box;
  std::shared_ptr<Operation> send(Tag tag, const std::vector<std::byte>& bytes) {
    auto message = std::make_shared<OutMessage>();
    message->tag = tag;
    message->data = bytes;
    message->operation = std::make_shared<Operation>();
    box.add(message);
    return message->operation;
  }
};

struct Receiver {
  ReceivedSet received;
  std::vector<std::pair<Tag, std::uint64_t>> matched;
  Inbox box{1 << 20, 1 << 30, [this](Tag tag, std::uint64_t index) { matched.emplace_back(tag, index); }};

  void take(const Chunk& chunk) {
    if (received.contains(chunk.frame.sequence)) return;
    take(chunk.frame, chunk.payload());
  }
  void take(const Frame& frame, std::span<const std::byte> payload) {
    auto landing = box.begin(frame);
    if (landing->where != nullptr && frame.length > 0) std::memcpy(landing->where, payload.data(), frame.length);
    received.add(frame.sequence);
    box.finish(std::move(landing));
  }
  std::shared_ptr<Operation> post(Tag tag, std::vector<std::byte>& into) {
    auto operation = std::make_shared<Operation>();
    box.post(tag, {.operation = operation, .buffer = into});
    return operation;
  }
};

TEST(Boxes, UrgentMessagesOvertakeOthers) {
  Sender sender(1 << 30);
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
  Sender sender(100000);
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
  const auto bytes = pattern(30000, 1);
  const auto operation = sender.send(1, bytes);
  const auto chunk = sender.box.next(0, 64 << 10, 1);
  sender.box.begin_writing(*chunk);
  ReceivedSet all;
  all.add(1);
  while (auto more = sender.box.next(0, 64 << 10, 1)) all.add(more->frame.sequence);
  sender.box.acknowledge(all);
  EXPECT_FALSE(operation->wait(0));
  sender.box.end_writing(*chunk);
  EXPECT_TRUE(operation->wait(0));
}

TEST(Outbox, EmptyMessagesCountToo) {
  Sender sender(100 * kUnmatchedCost);
  const std::vector<std::byte> nothing;
  for (int i = 0; i < 200; ++i) sender.send(1, nothing);
  int given = 0;
  while (sender.box.next(0, 64 << 10, 1)) ++given;
  EXPECT_EQ(given, 100);
  for (std::uint64_t i = 0; i < 50; ++i) sender.box.matched(1, i);
  while (sender.box.next(0, 64 << 10, 1)) ++given;
  EXPECT_EQ(given, 150);
}

TEST(Inbox, RefusesContradictions) {
  Receiver receiver;
  Frame frame{.type = FrameType::kData, .length = 10, .sequence = 1, .tag = 1, .index = 0, .total = 100, .offset = 0};
  const auto open = receiver.box.begin(frame);
  frame.total = 200;
  EXPECT_THROW(receiver.box.begin(frame), ProtocolError);
  frame.total = std::uint64_t{1} << 40;
  frame.index = 1;
  EXPECT_THROW(receiver.box.begin(frame), ProtocolError);
}

// Chunks whose bytes add up to their message, and leave some of it out.
TEST(Inbox, AMessageIsWholeOnlyWhenEachOfItsBytesCame) {
  for (const bool posted : {false, true}) {
    Receiver receiver;
    std::vector<std::byte> into(100, std::byte{1});
    std::shared_ptr<Operation> operation;
    if (posted) operation = receiver.post(1, into);
    const auto bytes = pattern(100, 5);
    Frame frame{.type = FrameType::kData, .length = 50, .sequence = 1, .tag = 1, .total = 100};
    const auto take = [&](std::uint64_t offset, std::uint32_t length) {
      frame.offset = offset;
      frame.length = length;
      receiver.take(frame, std::span(bytes).subspan(offset, length));
      ++frame.sequence;
    };
    take(20, 50);
    for (const auto& [offset, length] : {std::pair{20, 50}, {0, 21}, {69, 31}, {30, 10}, {0, 100}, {10, 80}})
      EXPECT_THROW(take(static_cast<std::uint64_t>(offset), static_cast<std::uint32_t>(length)), ProtocolError);
    take(0, 20);
    if (!posted) operation = receiver.post(1, into);
    EXPECT_FALSE(operation->wait(0));
    take(70, 30);
    EXPECT_TRUE(operation->wait(0));
    EXPECT_TRUE(into == bytes);
  }
}

// A peer that took a stream for lost sends its chunk again while the stream may still be there: one of them writes.
TEST(Inbox, AChunkThatComesAgainIsWrittenByTheLastStreamOnly) {
  for (const bool posted : {false, true}) {
    Receiver receiver;
    std::vector<std::byte> into(100);
    std::shared_ptr<Operation> operation;
    if (posted) operation = receiver.post(1, into);
    Frame frame{.type = FrameType::kData, .length = 60, .sequence = 1, .tag = 1, .total = 100};
    auto first = receiver.box.begin(frame), second = receiver.box.begin(frame);
    EXPECT_EQ(first->where, nullptr);
    EXPECT_FALSE(first->wanted());
    EXPECT_TRUE(second->where != nullptr && second->wanted());
    frame.length = 50;
    EXPECT_THROW(receiver.box.begin(frame), ProtocolError);
    second.reset();
    frame.length = 60;
    const auto bytes = pattern(100, 5);
    receiver.take(frame, std::span(bytes).first(60));
    first.reset();
    frame = {.type = FrameType::kData, .length = 40, .sequence = 2, .tag = 1, .total = 100, .offset = 60};
    receiver.take(frame, std::span(bytes).subspan(60));
    if (!posted) operation = receiver.post(1, into);
    EXPECT_TRUE(operation->wait(0));
    EXPECT_TRUE(into == bytes);
  }
}

TEST(Inbox, HoldsNothingOfChunksThatWereGivenUp) {
  Receiver receiver;
  Frame frame{.type = FrameType::kData, .length = 1000, .sequence = 1, .tag = 1, .total = 2000};
  for (frame.index = 0; frame.index < 100'000; ++frame.index) receiver.box.begin(frame);
  std::vector<std::unique_ptr<Landing>> landings;
  for (unsigned i = 0; i < (1 << 20) / (1000 + kUnmatchedCost); ++i, ++frame.index)
    landings.push_back(receiver.box.begin(frame));
  EXPECT_THROW(receiver.box.begin(frame), ProtocolError);
}

std::size_t bytes_in_use() {
#if __GLIBC_PREREQ(2, 33)
  const auto heap = mallinfo2();
#else
  const auto heap = mallinfo();
#endif
  return static_cast<std::size_t>(heap.uordblks) + static_cast<std::size_t>(heap.hblkhd);
}

// Filled with the smallest that there is, a limit is still one of memory.
void fill_with(std::uint32_t length, bool one_message) {
  SCOPED_TRACE(testing::Message() << length << " bytes, " << (one_message ? "chunks" : "messages"));
  Receiver receiver;
  const auto bytes = pattern(length, 6);
  Frame frame{
      .type = FrameType::kData, .length = length, .sequence = 1, .tag = 1, .total = one_message ? 1 << 30 : length};
  const std::size_t before = bytes_in_use();
  std::size_t count = 0;
  EXPECT_THROW(
      for (;; ++count, ++frame.sequence) {
        receiver.take(frame, bytes);
        if (one_message)
          frame.offset += 2 * length;
        else
          ++frame.index;
      },
      ProtocolError);
  EXPECT_EQ(count, (1 << 20) / (length + kUnmatchedCost));
  EXPECT_LT(bytes_in_use(), before + (1 << 20));
}

TEST(Inbox, SmallMessagesAndChunksTakeNoMoreMemoryThanTheyCount) {
  for (const std::uint32_t length : {0, 1, 25, 1000}) fill_with(length, false);
  for (const std::uint32_t length : {1, 25, 1000}) fill_with(length, true);
}

TEST(Inbox, WholeMessagesOutliveThePath) {
  Sender sender;
  Receiver receiver;
  const auto bytes = pattern(2000, 1);
  sender.send(5, bytes);
  while (auto chunk = sender.box.next(0, 64 << 10, 1)) receiver.take(*chunk);
  std::vector<std::byte> into(2000), more(2000);
  receiver.box.close(std::make_exception_ptr(PathError("closed")));
  EXPECT_TRUE(receiver.post(5, into)->wait(0));
  EXPECT_TRUE(into == bytes);
  EXPECT_THROW(receiver.post(5, more)->wait(0), PathError);
}

}  // namespace
}  // namespace maki::wan
