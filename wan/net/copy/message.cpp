#include "wan/net/copy/message.hpp"

#include <cstring>

#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

// ---- orders, replies, lists, results -------------------------------------------------------------------------------

namespace {

// The first byte of each message, which detects mixed-up ones.
enum class Type : std::uint8_t { kOrder = 0x51, kReply = 0x52, kPiece = 0x53, kAnswers = 0x54, kResults = 0x55 };

// All but the version, on which the rest depends.
template <class Io>
void fields(Io& io, Of<Io, Order>& order) {
  io.field(order.action, Order::Action::kPush, Order::Action::kBye, "unknown order");
  io.field(order.checksum);
  io.field(order.sole_file);
  io.field(order.destination, kMaxPath);
  io.list(order.sources, std::uint16_t{kMaxSources}, "too many sources",
          [](Io& one, auto& source) { one.field(source, kMaxPath); });
}

template <class Io>
void fields(Io& io, Of<Io, Reply>& reply) {
  io.field(reply.word, Reply::Word::kRefused, Reply::Word::kLater, "neither agreed nor refused");
  io.field(reply.sole_file);
  io.field(reply.reason, kMaxText);
}

template <class Io>
void fields(Io& io, Of<Io, Piece>& piece) {
  io.field(piece.first);
  io.field(piece.last);
  io.list(piece.entries, std::uint32_t{kMaxEntries}, "too many entries", [](Io& one, auto& entry) {
    one.field(entry.kind, Kind::kFile, Kind::kFolder, "neither a file nor a folder");
    one.field(entry.path, kMaxPath);
    one.field(entry.size, 0, kMaxFile, "a file is too large");
    one.field(entry.mtime);
    one.field(entry.mode, 0, 0777, "more than permission bits");
  });
}

template <class Io>
void fields(Io& io, Of<Io, Answers>& answers) {
  io.field(answers.first);
  io.list(answers.answers, std::uint32_t{kMaxEntries}, "too many answers", [](Io& one, auto& answer) {
    one.field(answer.request, FileRequest::kNothing, FileRequest::kCompare, "unknown request");
    if (answer.request != FileRequest::kContinue && answer.request != FileRequest::kCompare) return;
    one.field(answer.size, 0, kMaxFile, "a file is too large");
    one.field(answer.checksum);
  });
}

template <class Io>
void fields(Io& io, Of<Io, Results>& results) {
  io.field(results.done);
  auto& counts = results.counts;
  for (auto* n :
       {&counts.files, &counts.folders, &counts.bytes, &counts.skipped, &counts.skipped_bytes, &counts.failed})
    io.field(*n);
  io.list(results.failures, std::uint32_t{kMaxFailures}, "too many failures", [](Io& one, auto& failure) {
    one.field(failure.index);
    one.field(failure.text, kMaxText);
  });
}

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

template <class Message>
Bytes encoded(Type type, const Message& message) {
  ByteWriter out;
  out.put(type);
  fields(out, message);
  return message_of(out);
}

template <class Message>
Message decoded(Type type, std::span<const std::byte> bytes) {
  ByteReader in = open(bytes, type);
  Message message;
  fields(in, message);
  in.end();
  return message;
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
  fields(out, order);
  return message_of(out);
}

Order decode_order(std::span<const std::byte> message) {
  ByteReader in = open(message, Type::kOrder);
  Order order;
  in.field(order.version);
  if (order.version != kVersion) return order;
  fields(in, order);
  in.end();
  return order;
}

Bytes encode(const Reply& reply) { return encoded(Type::kReply, reply); }
Bytes encode(const Piece& piece) { return encoded(Type::kPiece, piece); }
Bytes encode(const Answers& answers) { return encoded(Type::kAnswers, answers); }
Bytes encode(const Results& results) { return encoded(Type::kResults, results); }
Reply decode_reply(std::span<const std::byte> message) { return decoded<Reply>(Type::kReply, message); }
Piece decode_piece(std::span<const std::byte> message) { return decoded<Piece>(Type::kPiece, message); }
Answers decode_answers(std::span<const std::byte> message) { return decoded<Answers>(Type::kAnswers, message); }
Results decode_results(std::span<const std::byte> message) { return decoded<Results>(Type::kResults, message); }

std::size_t encoded_size(const Entry& entry) { return 1 + 2 + entry.path.size() + 8 + 8 + 4; }

bool is_results(std::span<const std::byte> message) {
  return !message.empty() && message[0] == static_cast<std::byte>(Type::kResults);
}

// ---- contents of files ---------------------------------------------------------------------------------------------

namespace {

// In the order of Record's alternatives.
enum class RecordType : std::uint8_t { kBegin = 1, kContent, kHole, kEnd, kAbandon, kNote, kFinish };
static_assert(std::variant_size_v<Record> == static_cast<std::size_t>(RecordType::kFinish));

constexpr std::size_t kContentHead = 5;

template <class Io>
void fields(Io& io, Of<Io, Begin>& begin) {
  io.field(begin.index);
  io.field(begin.size, 0, kMaxFile, "a file is too large");
  io.field(begin.mtime);
  io.field(begin.mode, 0, 0777, "more than permission bits");
  io.field(begin.offset, 0, begin.size, "an offset is beyond the end");
  io.field(begin.same);
}

template <class Io>
void fields(Io& io, Of<Io, Hole>& hole) {
  io.field(hole.length, 0, kMaxFile, "a hole is too large");
}

template <class Io>
void fields(Io& io, Of<Io, End>& end) {
  io.field(end.checksum);
}

template <class Io>
void fields(Io& io, Of<Io, Abandon>& abandon) {
  io.field(abandon.index);
  io.field(abandon.reason, kMaxText);
}

template <class Io>
void fields(Io& io, Of<Io, Note>& note) {
  io.field(note.failed);
  io.field(note.text, kMaxText);
}

template <class Io>
void fields(Io&, Of<Io, Finish>&) {}

void fields(ByteWriter& out, const Content& content) {
  out.put(static_cast<std::uint32_t>(content.bytes.size()));
  out.put_bytes(content.bytes);
}
void fields(ByteReader& in, Content& content) { content.bytes = in.bytes(in.number<std::uint32_t>()); }

template <class One>
One read(ByteReader& in) {
  One one;
  fields(in, one);
  return one;
}

}  // namespace

void RecordWriter::reserve(std::size_t bytes) {
  if (message_.data && used_ + bytes > capacity_) flush();
  if (message_.data) return;
  capacity_ = std::max(capacity_, bytes);
  message_ = make_bytes(capacity_);
}

void RecordWriter::put(const Record& record) {
  ByteWriter out;
  out.put(static_cast<std::uint8_t>(record.index() + 1));
  std::visit([&](const auto& one) { fields(out, one); }, record);
  const auto& bytes = out.bytes();
  reserve(bytes.size());
  std::memcpy(message_.data.get() + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
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
    case RecordType::kBegin: return read<Begin>(in_);
    case RecordType::kContent: return read<Content>(in_);
    case RecordType::kHole: return read<Hole>(in_);
    case RecordType::kEnd: return read<End>(in_);
    case RecordType::kAbandon: return read<Abandon>(in_);
    case RecordType::kNote: return read<Note>(in_);
    case RecordType::kFinish: return read<Finish>(in_);
  }
  in_.fail("unknown record");
}

}  // namespace maki::wan::copy
