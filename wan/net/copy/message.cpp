#include "wan/net/copy/message.hpp"

#include "wan/net/byte_codec.hpp"
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

// ---- what is said of them ------------------------------------------------------------------------------------------

namespace {

// The first byte of each message, so that a mixed-up one is noticed.
enum class Type : std::uint8_t { kOrder = 0x51, kReply = 0x52, kPiece = 0x53, kAnswers = 0x54, kResults = 0x55 };

constexpr std::uint8_t kRefused = 0, kAgreed = 1, kLater = 2;
constexpr std::size_t kMaxFailures = 256;  // in one message; more come in the next one

Bytes message_of(const ByteWriter& out) {
  Bytes message = make_bytes(out.bytes().size());
  std::ranges::copy(out.bytes(), message.data.get());
  return message;
}

ByteReader open(std::span<const std::byte> message, Type type) {
  if (message.size() > kMaxMessage) throw ProtocolError("a message of the copy is too long");
  ByteReader in = reader_of(message);
  if (in.number<Type>() != type) throw ProtocolError("a message of the copy is not the one that was due");
  return in;
}

void put_counts(ByteWriter& out, const Counts& counts) {
  for (const std::uint64_t n :
       {counts.files, counts.folders, counts.bytes, counts.skipped, counts.skipped_bytes, counts.failed})
    out.put(n);
}

Counts read_counts(ByteReader& in) {
  Counts counts;
  for (std::uint64_t* n :
       {&counts.files, &counts.folders, &counts.bytes, &counts.skipped, &counts.skipped_bytes, &counts.failed})
    *n = in.number<std::uint64_t>();
  return counts;
}

Entry read_entry(ByteReader& in) {
  Entry entry;
  const auto kind = in.number<std::uint8_t>();
  if (kind != 1 && kind != 2) in.fail("neither a file nor a folder");
  entry.kind = static_cast<Kind>(kind);
  entry.path = in.text<TextLength>(kMaxPath);
  entry.size = in.number(kMaxFile, "a file is too large");
  entry.mtime = in.number<std::int64_t>();
  entry.mode = in.number(std::uint32_t{0777}, "more than permission bits");
  return entry;
}

}  // namespace

Bytes make_bytes(std::size_t size) { return {std::make_unique_for_overwrite<std::byte[]>(size), size}; }

ByteReader reader_of(std::span<const std::byte> message) {
  return {message, "a message of the copy", "a message of the copy makes no sense"};
}

Bytes encode(const Order& order) {
  ByteWriter out;
  out.put(Type::kOrder);
  out.put(order.version);
  out.put(order.action);
  out.put(order.checksum);
  out.put(order.sole_file);
  out.put_text<TextLength>(order.destination, kMaxPath);
  out.put(static_cast<std::uint16_t>(order.sources.size()));
  for (const std::string& source : order.sources) out.put_text<TextLength>(source, kMaxPath);
  return message_of(out);
}

// Of another version only the version is read.
Order decode_order(std::span<const std::byte> message) {
  ByteReader in = open(message, Type::kOrder);
  Order order;
  order.version = in.number<std::uint32_t>();
  if (order.version != kVersion) return order;
  const auto action = in.number(std::uint8_t{3}, "unknown order");
  if (action == 0) in.fail("unknown order");
  order.action = static_cast<Order::Action>(action);
  order.checksum = in.flag();
  order.sole_file = in.flag();
  order.destination = in.text<TextLength>(kMaxPath);
  const auto sources = in.number(static_cast<std::uint16_t>(kMaxSources), "too many sources");
  for (int i = 0; i < sources; ++i) order.sources.push_back(in.text<TextLength>(kMaxPath));
  in.end();
  return order;
}

Bytes encode(const Reply& reply) {
  ByteWriter out;
  out.put(Type::kReply);
  out.put(reply.agreed ? kAgreed : reply.later ? kLater : kRefused);
  out.put(reply.sole_file);
  out.put_text<TextLength>(reply.reason, kMaxText);
  return message_of(out);
}

Reply decode_reply(std::span<const std::byte> message) {
  ByteReader in = open(message, Type::kReply);
  Reply reply;
  const auto word = in.number(kLater, "neither agreed nor refused");
  reply.agreed = word == kAgreed;
  reply.later = word == kLater;
  reply.sole_file = in.flag();
  reply.reason = in.text<TextLength>(kMaxText);
  in.end();
  return reply;
}

std::size_t encoded_size(const Entry& entry) { return 1 + 2 + entry.path.size() + 8 + 8 + 4; }

Bytes encode(const Piece& piece) {
  ByteWriter out;
  out.put(Type::kPiece);
  out.put(piece.first);
  out.put(piece.last);
  out.put(static_cast<std::uint32_t>(piece.entries.size()));
  for (const Entry& entry : piece.entries) {
    out.put(entry.kind);
    out.put_text<TextLength>(entry.path, kMaxPath);
    out.put(entry.size);
    out.put(entry.mtime);
    out.put(entry.mode);
  }
  return message_of(out);
}

Piece decode_piece(std::span<const std::byte> message) {
  ByteReader in = open(message, Type::kPiece);
  Piece piece;
  piece.first = in.number<std::uint64_t>();
  piece.last = in.flag();
  const auto count = in.number(static_cast<std::uint32_t>(kMaxEntries), "too many entries");
  for (std::uint32_t i = 0; i < count; ++i) piece.entries.push_back(read_entry(in));
  in.end();
  return piece;
}

Bytes encode(const Answers& answers) {
  ByteWriter out;
  out.put(Type::kAnswers);
  out.put(answers.first);
  out.put(static_cast<std::uint32_t>(answers.answers.size()));
  for (const Answer& answer : answers.answers) {
    out.put(answer.request);
    if (answer.request != FileRequest::kContinue && answer.request != FileRequest::kCompare) continue;
    out.put(answer.size);
    out.put_bytes(answer.checksum);
  }
  return message_of(out);
}

bool is_results(std::span<const std::byte> message) {
  return !message.empty() && message[0] == static_cast<std::byte>(Type::kResults);
}

Answers decode_answers(std::span<const std::byte> message) {
  ByteReader in = open(message, Type::kAnswers);
  Answers answers;
  answers.first = in.number<std::uint64_t>();
  const auto count = in.number(static_cast<std::uint32_t>(kMaxEntries), "too many answers");
  for (std::uint32_t i = 0; i < count; ++i) {
    Answer answer;
    answer.request = static_cast<FileRequest>(in.number(std::uint8_t{3}, "unknown request"));
    if (answer.request == FileRequest::kContinue || answer.request == FileRequest::kCompare) {
      answer.size = in.number(kMaxFile, "a file is too large");
      answer.checksum = in.array<sizeof(Checksum)>();
    }
    answers.answers.push_back(answer);
  }
  in.end();
  return answers;
}

Bytes encode(const Results& results) {
  ByteWriter out;
  out.put(Type::kResults);
  out.put(results.done);
  put_counts(out, results.counts);
  const std::size_t count = std::min(results.failures.size(), kMaxFailures);
  out.put(static_cast<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    out.put(results.failures[i].index);
    out.put_text<TextLength>(results.failures[i].text, kMaxText);
  }
  return message_of(out);
}

Results decode_results(std::span<const std::byte> message) {
  ByteReader in = open(message, Type::kResults);
  Results results;
  results.done = in.flag();
  results.counts = read_counts(in);
  const auto count = in.number(static_cast<std::uint32_t>(kMaxFailures), "too many failures");
  for (std::uint32_t i = 0; i < count; ++i) {
    Failure failure;
    failure.index = in.number<std::uint64_t>();
    failure.text = in.text<TextLength>(kMaxText);
    results.failures.push_back(failure);
  }
  in.end();
  return results;
}

// ---- contents of files ---------------------------------------------------------------------------------------------

namespace {

enum class RecordType : std::uint8_t {
  kBegin = 1,
  kContent = 2,
  kHole = 3,
  kEnd = 4,
  kAbandon = 5,
  kNote = 6,
  kFinish = 7,
};

constexpr std::size_t kContentHead = 5;

Begin read_begin(ByteReader& in) {
  Begin begin;
  begin.index = in.number<std::uint64_t>();
  begin.size = in.number(kMaxFile, "a file is too large");
  begin.mtime = in.number<std::int64_t>();
  begin.mode = in.number(std::uint32_t{0777}, "more than permission bits");
  begin.offset = in.number(begin.size, "an offset is beyond the end");
  begin.same = in.flag();
  return begin;
}

}  // namespace

void RecordWriter::reserve(std::size_t bytes) {
  if (message_.data && used_ + bytes > capacity_) flush();
  if (message_.data) return;
  capacity_ = std::max(capacity_, bytes);
  message_ = make_bytes(capacity_);
}

void RecordWriter::append(const ByteWriter& record) {
  const auto& bytes = record.bytes();
  reserve(bytes.size());
  std::memcpy(message_.data.get() + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
}

void RecordWriter::put(const Begin& begin) {
  ByteWriter out;
  out.put(RecordType::kBegin);
  out.put(begin.index);
  out.put(begin.size);
  out.put(begin.mtime);
  out.put(begin.mode);
  out.put(begin.offset);
  out.put(begin.same);
  append(out);
}

void RecordWriter::put(const Hole& hole) {
  ByteWriter out;
  out.put(RecordType::kHole);
  out.put(hole.length);
  append(out);
}

void RecordWriter::put(const End& end) {
  ByteWriter out;
  out.put(RecordType::kEnd);
  out.put_bytes(end.checksum);
  append(out);
}

void RecordWriter::put(const Abandon& abandon) {
  ByteWriter out;
  out.put(RecordType::kAbandon);
  out.put(abandon.index);
  out.put_text<TextLength>(abandon.reason, kMaxText);
  append(out);
}

void RecordWriter::put(const Note& note) {
  ByteWriter out;
  out.put(RecordType::kNote);
  out.put(note.failed);
  out.put_text<TextLength>(note.text, kMaxText);
  append(out);
}

void RecordWriter::put(const Finish&) {
  ByteWriter out;
  out.put(RecordType::kFinish);
  append(out);
}

std::span<std::byte> RecordWriter::room(std::size_t least) {
  reserve(kContentHead + least);
  return {message_.data.get() + used_ + kContentHead, capacity_ - used_ - kContentHead};
}

void RecordWriter::filled(std::size_t bytes) {
  if (bytes == 0) return;
  message_.data[used_] = static_cast<std::byte>(RecordType::kContent);
  const auto length = static_cast<std::uint32_t>(bytes);
  std::memcpy(message_.data.get() + used_ + 1, &length, sizeof length);
  used_ += kContentHead + bytes;
}

void RecordWriter::flush() {
  if (used_ == 0) return;
  message_.size = used_;
  used_ = 0;
  send_(std::move(message_));
  message_ = {};
}

RecordReader::RecordReader(std::span<const std::byte> message) : in_(reader_of(message)) {
  if (message.size() > kMaxBatch) throw ProtocolError("a message of the copy is too long");
}

std::optional<Record> RecordReader::next() {
  if (in_.left() == 0) return std::nullopt;
  switch (in_.number<RecordType>()) {
    case RecordType::kBegin: return read_begin(in_);
    case RecordType::kContent: return Content{in_.bytes(in_.number<std::uint32_t>())};
    case RecordType::kHole: return Hole{in_.number(kMaxFile, "a hole is too large")};
    case RecordType::kEnd: return End{in_.array<sizeof(Checksum)>()};
    case RecordType::kAbandon: {
      const auto index = in_.number<std::uint64_t>();
      return Abandon{index, in_.text<TextLength>(kMaxText)};
    }
    case RecordType::kNote: {
      const bool failed = in_.flag();
      return Note{failed, in_.text<TextLength>(kMaxText)};
    }
    case RecordType::kFinish: return Finish{};
  }
  in_.fail("unknown record");
}

}  // namespace maki::wan::copy
