#include "wan/net/copy/records.hpp"

namespace maki::wan::copy {
namespace {

enum class Type : std::uint8_t {
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
  out.put(Type::kBegin);
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
  out.put(Type::kHole);
  out.put(hole.length);
  append(out);
}

void RecordWriter::put(const End& end) {
  ByteWriter out;
  out.put(Type::kEnd);
  out.put_bytes(end.checksum);
  append(out);
}

void RecordWriter::put(const Abandon& abandon) {
  ByteWriter out;
  out.put(Type::kAbandon);
  out.put(abandon.index);
  out.put_text<TextLength>(abandon.reason, kMaxText);
  append(out);
}

void RecordWriter::put(const Note& note) {
  ByteWriter out;
  out.put(Type::kNote);
  out.put(note.failed);
  out.put_text<TextLength>(note.text, kMaxText);
  append(out);
}

void RecordWriter::put(const Finish&) {
  ByteWriter out;
  out.put(Type::kFinish);
  append(out);
}

std::span<std::byte> RecordWriter::room(std::size_t least) {
  reserve(kContentHead + least);
  return {message_.data.get() + used_ + kContentHead, capacity_ - used_ - kContentHead};
}

void RecordWriter::filled(std::size_t bytes) {
  if (bytes == 0) return;
  message_.data[used_] = static_cast<std::byte>(Type::kContent);
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
  switch (in_.number<Type>()) {
    case Type::kBegin: return read_begin(in_);
    case Type::kContent: return Content{in_.bytes(in_.number<std::uint32_t>())};
    case Type::kHole: return Hole{in_.number(kMaxFile, "a hole is too large")};
    case Type::kEnd: return End{in_.array<sizeof(Checksum)>()};
    case Type::kAbandon: {
      const auto index = in_.number<std::uint64_t>();
      return Abandon{index, in_.text<TextLength>(kMaxText)};
    }
    case Type::kNote: {
      const bool failed = in_.flag();
      return Note{failed, in_.text<TextLength>(kMaxText)};
    }
    case Type::kFinish: return Finish{};
  }
  in_.fail("unknown record");
}

}  // namespace maki::wan::copy
