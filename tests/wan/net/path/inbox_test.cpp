// The inbox alone: contradictions, floods, chunks that come again, and the memory that it takes.
#include <gtest/gtest.h>
#include <malloc.h>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/boxes.hpp"

namespace maki::wan {
namespace {

using test::pattern;
using test::Receiver;
using test::Sender;

TEST(Inbox, AMessageThatDoesNotFitIsAnErrorOfItsReceiveOnly) {
  Sender sender;
  sender.box.set_unmatched_limit(1 << 20);
  Receiver receiver;
  const auto bytes = pattern(2000, 1);
  std::vector<std::byte> small(1000), large(3000);
  sender.send(5, bytes);
  sender.send(5, bytes);
  const auto first = receiver.post(5, small), second = receiver.post(5, large);
  while (auto chunk = sender.box.next(0, 64 << 10, 1)) receiver.take(*chunk);
  EXPECT_THROW(first->wait(0), Error);
  EXPECT_TRUE(second->wait(0));
  EXPECT_EQ(second->size(), 2000u);
}

TEST(Inbox, RefusesContradictionsAndFloods) {
  Receiver receiver;
  Frame frame{.type = FrameType::kData, .length = 10, .sequence = 1, .tag = 1, .index = 0, .total = 100, .offset = 0};
  std::vector<std::unique_ptr<Landing>> open;
  open.push_back(receiver.box.begin(frame));
  frame.total = 200;
  EXPECT_THROW(receiver.box.begin(frame), ProtocolError);
  frame.total = std::uint64_t{1} << 40;
  frame.index = 1;
  EXPECT_THROW(receiver.box.begin(frame), ProtocolError);
  frame = {
      .type = FrameType::kData, .length = 1 << 20, .sequence = 1, .tag = 2, .index = 0, .total = 1 << 30, .offset = 0};
  EXPECT_THROW(
      for (int i = 0; i < 20; ++i) {
        open.push_back(receiver.box.begin(frame));
        frame.offset += frame.length;
        ++frame.sequence;
      },
      ProtocolError);
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

TEST(Inbox, SmallMessagesTakeNoMoreMemoryThanTheyCount) {
  for (const std::uint32_t length : {0, 1, 25, 1000}) fill_with(length, false);
}

TEST(Inbox, SmallChunksTakeNoMoreMemoryThanTheyCount) {
  for (const std::uint32_t length : {1, 25, 1000}) fill_with(length, true);
}

TEST(Inbox, WholeMessagesOutliveThePath) {
  Sender sender;
  sender.box.set_unmatched_limit(1 << 20);
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
