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
  return {.action = Order::Action::kPull, .checksum = true, .destination = "a/b/", .sources = {"x", "", "y/z"}};
}

inline Piece some_piece() {
  const Entry folder{.kind = Kind::kFolder, .path = "d", .size = 0, .mtime = -5, .mode = 0755};
  const Entry file{.path = "d/f", .size = std::uint64_t{5} << 32, .mtime = 1234567890123456789, .mode = 0};
  return {.first = 77, .last = true, .entries = {folder, file}};
}

inline Answers some_answers() {
  return {.first = 3,
          .answers = {{.request = FileRequest::kNothing},
                      {FileRequest::kContinue, std::uint64_t{6} << 32, some_checksum(1)},
                      {.request = FileRequest::kSend},
                      {FileRequest::kCompare, 1, some_checksum(9)}}};
}

inline Results some_results() {
  return {.failures = {{9, "no room"}, {11, ""}},
          .done = true,
          .counts = {.files = 1, .folders = 2, .bytes = 3, .skipped = 4, .skipped_bytes = 5, .failed = 6}};
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
