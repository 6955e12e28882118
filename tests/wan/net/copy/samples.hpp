// Messages of a copy, for tests that encode and decode them.
#pragma once

#include <cstring>

#include "wan/net/copy/message.hpp"

namespace maki::wan::copy {

inline Checksum some_checksum(int seed) {
  Checksum checksum;
  for (std::size_t i = 0; i < checksum.size(); ++i)
    checksum[i] = static_cast<std::byte>(seed + static_cast<int>(i) * 3);
  return checksum;
}

inline Order some_order() {
  Order order;
  order.action = Order::Action::kPull;
  order.checksum = true;
  order.destination = "a/b/";
  order.sources = {"x", "", "y/z"};
  return order;
}

inline Piece some_piece() {
  Piece piece{.first = 77, .last = true, .entries = {}};
  piece.entries.push_back({.kind = Kind::kFolder, .path = "d", .size = 0, .mtime = -5, .mode = 0755});
  piece.entries.push_back(
      {.kind = Kind::kFile, .path = "d/f", .size = std::uint64_t{5} << 32, .mtime = 1234567890123456789, .mode = 0});
  return piece;
}

inline Answers some_answers() {
  Answers answers{.first = 3, .answers = {}};
  answers.answers.push_back({.request = FileRequest::kNothing});
  answers.answers.push_back(
      {.request = FileRequest::kContinue, .size = std::uint64_t{6} << 32, .checksum = some_checksum(1)});
  answers.answers.push_back({.request = FileRequest::kSend});
  answers.answers.push_back({.request = FileRequest::kCompare, .size = 1, .checksum = some_checksum(9)});
  return answers;
}

inline Results some_results() {
  Results results;
  results.done = true;
  results.counts = {.files = 1, .folders = 2, .bytes = 3, .skipped = 4, .skipped_bytes = 5, .failed = 6};
  results.failures = {{9, "no room"}, {11, ""}};
  return results;
}

inline Bytes some_records() {
  Bytes out;
  RecordWriter writer(4096, [&](Bytes message) { out = std::move(message); });
  writer.put(Begin{.index = 4, .size = 100, .mtime = 7, .mode = 0644, .offset = 20, .same = false});
  std::memset(writer.room(10).data(), 'x', 10);
  writer.filled(10);
  writer.put(Hole{70});
  writer.put(End{some_checksum(2)});
  writer.put(Abandon{5, "vanished"});
  writer.put(Note{true, "unreadable"});
  writer.put(Finish{});
  writer.flush();
  return out;
}

}  // namespace maki::wan::copy
