// The contents of files as records in large messages: Begin, bytes and holes, then End or Abandon, for one file after
// another.
#pragma once

#include <functional>
#include <optional>
#include <variant>

#include "wan/net/copy/message.hpp"

namespace maki::wan::copy {

// A file's properties as they are now that it is read (they may have changed since it was listed).
struct Begin {
  std::uint64_t index = 0;
  std::uint64_t size = 0;
  std::int64_t mtime = 0;
  std::uint32_t mode = 0;
  std::uint64_t offset = 0;  // the bytes before it are what the receiver has
  bool same = false;         // the receiver's whole file is right (kCompare)
};
struct Content {
  std::span<const std::byte> bytes;
};
struct Hole {
  std::uint64_t length = 0;  // so many zeros
};
struct End {
  Checksum checksum{};  // of the whole file
};
// The file with this index will not come, or not the rest of it.
struct Abandon {
  std::uint64_t index = 0;
  std::string reason;
};
struct Note {
  bool failed = false;  // something that should have been copied was not
  std::string text;
};
struct Finish {};

using Record = std::variant<Begin, Content, Hole, End, Abandon, Note, Finish>;

// Fills messages of `capacity` bytes and hands each on when it is full, or at flush().
class RecordWriter {
 public:
  using Send = std::function<void(Bytes)>;
  RecordWriter(std::size_t capacity, Send send) : capacity_(capacity), send_(std::move(send)) {}

  void put(const Begin& begin);
  void put(const Hole& hole);
  void put(const End& end);
  void put(const Abandon& abandon);
  void put(const Note& note);
  void put(const Finish& finish);
  // Contents without a copy: room() gives at least `least` bytes (4 kB or less) of the message to read a file into,
  // filled() says how many of them were.
  std::span<std::byte> room(std::size_t least);
  void filled(std::size_t bytes);
  void flush();

 private:
  void reserve(std::size_t bytes);
  void append(const ByteWriter& record);

  std::size_t capacity_;
  Send send_;
  Bytes message_;
  std::size_t used_ = 0;
};

// Contents refer to the message. next() throws ProtocolError.
class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> message);
  std::optional<Record> next();

 private:
  ByteReader in_;
};

}  // namespace maki::wan::copy
