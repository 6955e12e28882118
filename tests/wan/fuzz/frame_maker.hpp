// Frames as a peer with a key might send them: most in order, some not, a few that cannot be.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "tests/wan/fuzz/rounds.hpp"
#include "wan/net/path.hpp"
#include "wan/net/path/wire.hpp"

namespace maki::wan::fuzz {

inline constexpr std::byte kFilling{0xab};  // every byte of every message: another one has come from somewhere else
inline constexpr std::uint64_t kMessageLimit = 1 << 20;
inline constexpr Tag kTags = 4;

class FrameMaker {
 public:
  explicit FrameMaker(Random& random) : random_(random) {}
  struct Made {
    Frame frame;
    std::vector<std::byte> payload;
    bool possible = true;  // encode() takes it
  };
  Made next() {
    Made made;
    const auto kind = below(random_, 200);
    if (kind < 140)
      made.frame = chunk();
    else if (kind < 146)
      made.frame = other_place();
    else if (kind < 156)
      made.frame = again();
    else if (kind < 196)
      made.frame = control();
    else
      made.frame = wild();
    made.possible = kind < 196;
    made.payload = payload_of(made.frame);
    if (!made.possible) return made;
    made.frame.length = static_cast<std::uint32_t>(made.payload.size());
    if (sent_.size() < kRemembered)
      sent_.push_back(made.frame);
    else
      sent_[below(random_, kRemembered)] = made.frame;
    return made;
  }
  void new_session() {
    sequence_ = 0;
    next_index_.clear();
    messages_.clear();
    sent_.clear();
  }

 private:
  struct Message {
    Tag tag = 0;
    std::uint64_t index = 0, total = 0, sent = 0;
  };
  Message& some_message() {
    std::erase_if(messages_, [](const Message& one) { return one.sent == one.total; });
    if (messages_.size() < kOpenMessages && (messages_.empty() || one_in(random_, 3))) {
      const Tag tag = below(random_, kTags);
      const std::uint64_t totals[] = {1, 100, 4096, 5000, 30000, 70000};
      messages_.push_back({tag, next_index_[tag]++, any_of(random_, totals), 0});
    }
    return messages_[below(random_, messages_.size())];
  }
  Frame chunk() {
    Message& message = some_message();
    const std::uint64_t length = std::min(message.total - message.sent, 1 + below(random_, kChunk));
    const Frame frame{.type = FrameType::kData,
                      .length = static_cast<std::uint32_t>(length),
                      .sequence = ++sequence_,
                      .tag = message.tag,
                      .index = message.index,
                      .total = message.total,
                      .offset = message.sent};
    message.sent += length;
    return frame;
  }
  // Of a message that is on its way: where another chunk was, or will be, or leaving a gap.
  Frame other_place() {
    Frame frame = chunk();
    frame.offset = below(random_, frame.total + 1);
    frame.length = static_cast<std::uint32_t>(below(random_, std::min(kChunk, frame.total - frame.offset) + 1));
    if (one_in(random_, 4)) frame.total += one_in(random_, 2) ? 1 : frame.total;
    return frame;
  }
  // What went before, or its number with something else.
  Frame again() {
    if (sent_.empty()) return chunk();
    Frame frame = sent_[below(random_, sent_.size())];
    if (frame.type != FrameType::kData || one_in(random_, 2)) return frame;
    const Frame other = one_in(random_, 2) ? other_place() : chunk();
    const std::uint64_t sequence = frame.sequence;
    frame = other;
    frame.sequence = sequence;
    return frame;
  }
  Frame control() {
    switch (below(random_, 12)) {
      // clang-format off
      case 0: case 1: case 2: case 3: return {.type = FrameType::kAck};
      case 4: case 5: return {.type = FrameType::kMatched, .sequence = ++sequence_, .tag = below(random_, kTags), .index = below(random_, 8)};
      case 6: case 7: case 8: return {.type = FrameType::kPing, .sequence = random_()};
      // clang-format on
      case 9: return {.type = FrameType::kPong, .sequence = one_in(random_, 4) ? random_() : 0};
      case 10:
        return {.type = FrameType::kData,
                .sequence = ++sequence_,
                .tag = below(random_, kTags),
                .index = next_index_[0]++};  // empty
      default: return {.type = one_in(random_, 8) ? FrameType::kGoodbye : FrameType::kPing};
    }
  }
  Frame wild() {
    Frame frame = one_in(random_, 2) ? chunk() : control();
    std::uint64_t* const words[] = {&frame.sequence, &frame.tag, &frame.index, &frame.total, &frame.offset};
    for (auto changes = 1 + below(random_, 3); changes > 0; --changes)
      *words[below(random_, std::size(words))] = one_in(random_, 3) ? random_() : any_of(random_, kWild);
    if (one_in(random_, 4)) frame.length = static_cast<std::uint32_t>(any_of(random_, kWild));
    if (one_in(random_, 8)) frame.type = static_cast<FrameType>(random_());
    return frame;
  }
  std::vector<std::byte> payload_of(const Frame& frame) {
    if (frame.type == FrameType::kAck && frame.length == 0) {
      ReceivedSet set;
      for (std::uint64_t i = 1, end = below(random_, 4); i <= end; ++i)
        set.add(i + (one_in(random_, 8) ? below(random_, 9) : 0));
      auto bytes = set.encode(kMaxControl);
      if (one_in(random_, 20)) bytes[below(random_, bytes.size())] = static_cast<std::byte>(random_());
      return bytes;
    }
    return std::vector<std::byte>(std::min<std::size_t>(frame.length, 2 * kChunk), kFilling);
  }

  static constexpr std::size_t kOpenMessages = 6, kRemembered = 32;
  static constexpr std::uint64_t kChunk = 6000;
  static constexpr std::uint64_t kWild[] = {
      0,          1,          2,          63,        255,  256, 65536, kMessageLimit, kMessageLimit + 1,
      1ull << 32, 1ull << 62, 1ull << 63, ~0ull - 1, ~0ull};
  Random& random_;
  std::uint64_t sequence_ = 0;
  std::map<Tag, std::uint64_t> next_index_;
  std::vector<Message> messages_;
  std::vector<Frame> sent_;
};

}  // namespace maki::wan::fuzz
