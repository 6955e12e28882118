#include "wan/net/copy/message.hpp"

#include "wan/net/copy/fields.hpp"
#include "wan/net/copy/names.hpp"

namespace maki::wan::copy {
namespace {

// The first byte of each message, so that a mixed-up one is noticed.
enum class Type : std::uint8_t { kOrder = 0x51, kReply = 0x52, kPiece = 0x53, kAnswers = 0x54, kResults = 0x55 };

constexpr std::uint8_t kRefused = 0, kAgreed = 1, kLater = 2;
constexpr std::size_t kMaxFailures = 256;  // in one message; more come in the next one

FieldReader open(std::span<const std::byte> message, Type type) {
  if (message.size() > kMaxMessage) throw ProtocolError("a message of the copy is too long");
  FieldReader in(message);
  if (in.number<Type>() != type) throw ProtocolError("a message of the copy is not the one that was due");
  return in;
}

void put_counts(FieldWriter& out, const Counts& counts) {
  for (const std::uint64_t n :
       {counts.files, counts.folders, counts.bytes, counts.skipped, counts.skipped_bytes, counts.failed})
    out.put(n);
}

Counts read_counts(FieldReader& in) {
  Counts counts;
  for (std::uint64_t* n :
       {&counts.files, &counts.folders, &counts.bytes, &counts.skipped, &counts.skipped_bytes, &counts.failed})
    *n = in.number<std::uint64_t>();
  return counts;
}

Entry read_entry(FieldReader& in) {
  Entry entry;
  const auto kind = in.number<std::uint8_t>();
  if (kind != 1 && kind != 2)
    throw ProtocolError("a message of the copy makes no sense", "neither a file nor a folder");
  entry.kind = static_cast<Kind>(kind);
  entry.path = in.text(kMaxPath);
  entry.size = in.number(kMaxFile, "a file is too large");
  entry.mtime = in.number<std::int64_t>();
  entry.mode = in.number(std::uint32_t{0777}, "more than permission bits");
  return entry;
}

}  // namespace

Bytes encode(const Order& order) {
  FieldWriter out;
  out.put(Type::kOrder);
  out.put(order.version);
  out.put(order.action);
  out.put(static_cast<std::uint8_t>(order.checksum));
  out.put(static_cast<std::uint8_t>(order.sole_file));
  out.put_text(order.destination, kMaxPath);
  out.put(static_cast<std::uint16_t>(order.sources.size()));
  for (const std::string& source : order.sources) out.put_text(source, kMaxPath);
  return out.message();
}

// Of another version only the version is read.
Order decode_order(std::span<const std::byte> message) {
  FieldReader in = open(message, Type::kOrder);
  Order order;
  order.version = in.number<std::uint32_t>();
  if (order.version != kVersion) return order;
  const auto action = in.number(std::uint8_t{3}, "unknown order");
  if (action == 0) throw ProtocolError("a message of the copy makes no sense", "unknown order");
  order.action = static_cast<Order::Action>(action);
  order.checksum = in.flag();
  order.sole_file = in.flag();
  order.destination = in.text(kMaxPath);
  const auto sources = in.number(static_cast<std::uint16_t>(kMaxSources), "too many sources");
  for (int i = 0; i < sources; ++i) order.sources.push_back(in.text(kMaxPath));
  in.end();
  return order;
}

Bytes encode(const Reply& reply) {
  FieldWriter out;
  out.put(Type::kReply);
  out.put(reply.agreed ? kAgreed : reply.later ? kLater : kRefused);
  out.put(static_cast<std::uint8_t>(reply.sole_file));
  out.put_text(reply.reason, kMaxText);
  return out.message();
}

Reply decode_reply(std::span<const std::byte> message) {
  FieldReader in = open(message, Type::kReply);
  Reply reply;
  const auto word = in.number(kLater, "neither agreed nor refused");
  reply.agreed = word == kAgreed;
  reply.later = word == kLater;
  reply.sole_file = in.flag();
  reply.reason = in.text(kMaxText);
  in.end();
  return reply;
}

std::size_t encoded_size(const Entry& entry) { return 1 + 2 + entry.path.size() + 8 + 8 + 4; }

Bytes encode(const Piece& piece) {
  FieldWriter out;
  out.put(Type::kPiece);
  out.put(piece.first);
  out.put(static_cast<std::uint8_t>(piece.last));
  out.put(static_cast<std::uint32_t>(piece.entries.size()));
  for (const Entry& entry : piece.entries) {
    out.put(entry.kind);
    out.put_text(entry.path, kMaxPath);
    out.put(entry.size);
    out.put(entry.mtime);
    out.put(entry.mode);
  }
  return out.message();
}

Piece decode_piece(std::span<const std::byte> message) {
  FieldReader in = open(message, Type::kPiece);
  Piece piece;
  piece.first = in.number<std::uint64_t>();
  piece.last = in.flag();
  const auto count = in.number(static_cast<std::uint32_t>(kMaxEntries), "too many entries");
  for (std::uint32_t i = 0; i < count; ++i) piece.entries.push_back(read_entry(in));
  in.end();
  return piece;
}

Bytes encode(const Answers& answers) {
  FieldWriter out;
  out.put(Type::kAnswers);
  out.put(answers.first);
  out.put(static_cast<std::uint32_t>(answers.answers.size()));
  for (const Answer& answer : answers.answers) {
    out.put(answer.wish);
    if (answer.wish != Wish::kContinue && answer.wish != Wish::kCompare) continue;
    out.put(answer.size);
    out.put_bytes(answer.checksum);
  }
  return out.message();
}

bool is_results(std::span<const std::byte> message) {
  return !message.empty() && message[0] == static_cast<std::byte>(Type::kResults);
}

Answers decode_answers(std::span<const std::byte> message) {
  FieldReader in = open(message, Type::kAnswers);
  Answers answers;
  answers.first = in.number<std::uint64_t>();
  const auto count = in.number(static_cast<std::uint32_t>(kMaxEntries), "too many answers");
  for (std::uint32_t i = 0; i < count; ++i) {
    Answer answer;
    answer.wish = static_cast<Wish>(in.number(std::uint8_t{3}, "unknown wish"));
    if (answer.wish == Wish::kContinue || answer.wish == Wish::kCompare) {
      answer.size = in.number(kMaxFile, "a file is too large");
      const auto raw = in.bytes(answer.checksum.size());
      std::copy(raw.begin(), raw.end(), answer.checksum.begin());
    }
    answers.answers.push_back(answer);
  }
  in.end();
  return answers;
}

Bytes encode(const Results& results) {
  FieldWriter out;
  out.put(Type::kResults);
  out.put(static_cast<std::uint8_t>(results.done));
  put_counts(out, results.counts);
  const std::size_t count = std::min(results.failures.size(), kMaxFailures);
  out.put(static_cast<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    out.put(results.failures[i].index);
    out.put_text(results.failures[i].text, kMaxText);
  }
  return out.message();
}

Results decode_results(std::span<const std::byte> message) {
  FieldReader in = open(message, Type::kResults);
  Results results;
  results.done = in.flag();
  results.counts = read_counts(in);
  const auto count = in.number(static_cast<std::uint32_t>(kMaxFailures), "too many failures");
  for (std::uint32_t i = 0; i < count; ++i) {
    Failure failure;
    failure.index = in.number<std::uint64_t>();
    failure.text = in.text(kMaxText);
    results.failures.push_back(failure);
  }
  in.end();
  return results;
}

}  // namespace maki::wan::copy
