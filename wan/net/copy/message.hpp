// What the two sides of a copy say to each other. The side with the files is the sender, whichever of the two called.
//
//   caller -> server   Order                                                     (kControlTag)
//   server -> caller   Reply
//   sender -> receiver Piece, Piece, ...: what there is to copy                    (kPlanTag)
//   receiver -> sender Answers to each Piece: what of it is wanted, from where on  (kBackTag)
//   sender -> receiver batches of records: many small files in one, a large file over many   (kDataTag)
//   receiver -> sender Results: files that failed; at the end the counts           (kBackTag)
//
// Nothing waits for an answer about a single file: pieces, answers and contents are all under way at once.
// Little-endian. Each decode() throws ProtocolError for anything that encode() cannot have made.
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
inline constexpr std::size_t kMaxMessage = 2 << 20;  // of any other
inline constexpr std::size_t kMaxEntries = 8192;     // of a Piece
inline constexpr std::size_t kMaxSources = 4096;     // of an Order
inline constexpr std::size_t kMaxFailures = 256;     // of Results; more come in the next ones
inline constexpr std::size_t kMaxText = 1000;        // what is wrong with a file
inline constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 62;

struct Order {
  enum class Action : std::uint8_t { kPush = 1, kPull = 2, kBye = 3 };
  Action action = Action::kBye;
  std::uint32_t version = kVersion;
  bool checksum = false;             // push: compare all files by their contents
  bool sole_file = false;            // push: it is of one file, and the destination may be its new name
  std::string destination;           // push: below the server's root; a trailing slash says that it is a folder
  std::vector<std::string> sources;  // pull
};

struct Reply {
  bool agreed = false;
  bool sole_file = false;  // pull, as above
  bool later = false;      // refused for now: the same order may be taken another time
  std::string reason = {};
};

enum class Kind : std::uint8_t { kFile = 1, kFolder = 2 };

struct Entry {
  Kind kind = Kind::kFile;
  std::string path;  // relative, as check_path() wants it; the receiver checks that itself
  std::uint64_t size = 0;
  std::int64_t mtime = 0;  // nanoseconds since 1970
  std::uint32_t mode = 0;  // permission bits, at most 0777
};

// Entries are numbered through all pieces, from 0. Folders come before what is in them.
struct Piece {
  std::uint64_t first = 0;
  bool last = false;
  std::vector<Entry> entries;
};

enum class FileRequest : std::uint8_t {
  kNothing = 0,  // the receiver has it, or cannot take it
  kSend = 1,
  kContinue = 2,  // the receiver has the first `size` bytes, with this checksum
  kCompare = 3,   // it has a whole file of this size, with this checksum
};

struct Answer {
  FileRequest request = FileRequest::kNothing;
  std::uint64_t size = 0;
  Checksum checksum{};
};

struct Answers {
  std::uint64_t first = 0;
  std::vector<Answer> answers;
};

inline constexpr std::uint64_t kNoEntry = ~std::uint64_t{0};

struct Failure {
  std::uint64_t index = 0;  // kNoEntry: of none in particular
  std::string text;
};

struct Counts {
  std::uint64_t files = 0, folders = 0, bytes = 0;  // taken; bytes: what had to be sent of them
  std::uint64_t skipped = 0, skipped_bytes = 0;     // were there already
  std::uint64_t failed = 0;
};

struct Results {
  std::vector<Failure> failures;
  bool done = false;  // the last one
  Counts counts;
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

// The contents of files as records in large messages: Begin, bytes and holes, then End or Abandon, for one file after
// another.

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

  void put(const Record& record);
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
