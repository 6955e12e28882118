// Both ends of a path's messages without a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "wan/net/path.hpp"
#include "wan/net/path/boxes.hpp"

namespace maki::wan::test {

struct Sender {
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

}  // namespace maki::wan::test
