// The protocol of a copy. The side with the files is the sender, whichever of the two called.
//
//   caller -> server   Order                                                            (kControlTag)
//   server -> caller   Reply
//   sender -> receiver Piece, Piece, ...: the list of files                             (kPlanTag)
//   receiver -> sender Answers to each Piece: entries wanted, from which offset         (kBackTag)
//   sender -> receiver batches of records: many small files in one, or a part of a file (kDataTag)
//   receiver -> sender Results: files that failed; at the end the counts                (kBackTag)
//
// Nothing waits for an answer about a single file: pieces, answers and contents are all in flight at once.
// Little-endian. Each decode() throws ProtocolError for anything that encode() cannot have produced.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "wan/net/byte_codec.hpp"
#include "wan/net/copy/digest.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::copy {

inline constexpr std::uint32_t kVersion = 2;
inline constexpr Tag kControlTag = 1, kPlanTag = 2, kDataTag = 3, kBackTag = 4;
inline constexpr std::size_t kMaxBatch = 8 << 20;    // bytes of a message of records
inline constexpr std::size_t kMaxMessage = 2 << 20;  // of any other message
inline constexpr std::size_t kMaxEntries = 8192;     // of a Piece
inline constexpr std::size_t kMaxSources = 4096;     // of an Order
inline constexpr std::size_t kMaxFailures = 256;     // in one Results; the next ones hold more
inline constexpr std::size_t kMaxText = 1000;        // bytes of a file's error text
inline constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 62;

struct Order {
  enum class Action : std::uint8_t { kPush = 1, kPull = 2, kBye = 3 };
  Action action = Action::kBye;
  std::uint32_t version = kVersion;
  bool checksum = false;             // push: compare all files by their contents
  bool sole_file = false;            // push: a single file, and the destination may be its new name
  std::string destination;           // push: below the server's root; a trailing slash marks a folder
  std::vector<std::string> sources;  // pull
  bool operator==(const Order&) const = default;
};

struct Reply {
  enum class Word : std::uint8_t { kRefused = 0, kAgreed = 1, kLater = 2 };  // kLater: refused for now
  Word word = Word::kRefused;
  bool sole_file = false;  // pull, as above
  std::string reason = {};
  bool operator==(const Reply&) const = default;
};

enum class Kind : std::uint8_t { kFile = 1, kFolder = 2 };

struct Entry {
  Kind kind = Kind::kFile;
  std::string path;  // relative, as check_path() requires; the receiver checks it too
  std::uint64_t size = 0;
  std::int64_t mtime = 0;  // nanoseconds since 1970
  std::uint32_t mode = 0;  // permission bits, at most 0777
  bool operator==(const Entry&) const = default;
};

// Entries are numbered over all pieces, from 0. Folders come before their contents.
struct Piece {
  std::uint64_t first = 0;
  bool last = false;
  std::vector<Entry> entries;
  bool operator==(const Piece&) const = default;
};

enum class FileRequest : std::uint8_t {
  kNothing = 0,  // the receiver has it, or cannot accept it
  kSend = 1,
  kContinue = 2,  // the receiver has the first `size` bytes, with this checksum
  kCompare = 3,   // it has a complete file of this size, with this checksum
};

struct Answer {
  FileRequest request = FileRequest::kNothing;
  std::uint64_t size = 0;
  Checksum checksum{};
  bool operator==(const Answer&) const = default;
};

struct Answers {
  std::uint64_t first = 0;
  std::vector<Answer> answers;
  bool operator==(const Answers&) const = default;
};

inline constexpr std::uint64_t kNoEntry = ~std::uint64_t{0};

struct Failure {
  std::uint64_t index = 0;  // kNoEntry: no particular entry
  std::string text;
  bool operator==(const Failure&) const = default;
};

struct Counts {
  std::uint64_t files = 0, folders = 0, bytes = 0;  // accepted; bytes: those that had to be sent
  std::uint64_t skipped = 0, skipped_bytes = 0;     // already present
  std::uint64_t failed = 0;
  bool complete() const { return failed == 0; }
  bool operator==(const Counts&) const = default;
};

struct Results {
  std::vector<Failure> failures;
  bool done = false;  // the last one
  Counts counts;
  bool operator==(const Results&) const = default;
};

Bytes make_bytes(std::size_t size);
ByteReader reader_of(std::span<const std::byte> message);

Bytes encode(const Order& order);
Bytes encode(const Reply& reply);
Bytes encode(const Piece& piece);
Bytes encode(const Answers& answers);
Bytes encode(const Results& results);
Order decode_order(std::span<const std::byte> message);
Reply decode_reply(std::span<const std::byte> message);
Piece decode_piece(std::span<const std::byte> message);
// On kBackTag.
bool is_results(std::span<const std::byte> message);
Answers decode_answers(std::span<const std::byte> message);
Results decode_results(std::span<const std::byte> message);

std::size_t encoded_size(const Entry& entry);

// The contents of files as records in large messages: Begin, bytes and holes, then End or Abandon, file after file.

// A file's properties at the time of reading (they may have changed since the listing).
struct Begin {
  std::uint64_t index = 0;
  std::uint64_t size = 0;
  std::int64_t mtime = 0;
  std::uint32_t mode = 0;
  std::uint64_t offset = 0;  // the receiver has the bytes before it
  bool same = false;         // the receiver's complete file is identical (kCompare)
};
struct Content {
  std::span<const std::byte> bytes;
};
struct Hole {
  std::uint64_t length = 0;  // number of zeros
};
struct End {
  Checksum checksum{};  // of the whole file
};
// The file with this index, or its rest, will not be sent.
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

// Fills messages of `capacity` bytes and passes each on when it is full, or at flush().
class RecordWriter {
 public:
  using Send = std::function<void(Bytes)>;
  RecordWriter(std::size_t capacity, Send send) : capacity_(capacity), send_(std::move(send)) {}

  void put(const Record& record);
  // File contents without a copy: room() returns at least `least` bytes (4 kB or less) of the message to read a file
  // into; filled() tells how many were used.
  std::span<std::byte> room(std::size_t least);
  void filled(std::size_t bytes);
  void flush();

 private:
  void reserve(std::size_t bytes);

  std::size_t capacity_;
  Send send_;
  Bytes message_;
  std::size_t used_ = 0;
};

// The contents refer to the message's memory. next() throws ProtocolError.
class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> message);
  std::optional<Record> next();

 private:
  ByteReader in_;
};

}  // namespace maki::wan::copy
