#include "tests/wan/fuzz/copy_maker.hpp"

#include <algorithm>
#include <cstring>

namespace maki::wan::fuzz {
namespace {

std::vector<std::byte> block(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

constexpr std::uint64_t kWild[] = {0,    1,       2,          100,        4096,       8191, 8192,
                                   8193, 1 << 20, 1ull << 40, 1ull << 61, 1ull << 62, ~0ull};

}  // namespace

std::uint64_t CopyMaker::number() { return one_in(random_, 4) ? random_() : any_of(random_, kWild); }

std::string CopyMaker::path() {
  const char* const paths[] = {"a", "b", "d", "d/a", "d/e/f", "a/b", "tree/file 1.dat", "x", "y/z"};
  const char* const bad[] = {
      "",       "/",  "..",   "../outside",  "d/../../outside", "/etc/passwd", ".", "a//b", ".a.maki-part",
      "\x01\n", "a/", "link", "link/outside"};
  if (one_in(random_, 12)) return any_of(random_, bad);
  if (one_in(random_, 40)) return std::string(below(random_, 5000), 'n');
  return any_of(random_, paths);
}

CopyMaker::Made CopyMaker::order(copy::Order::Action action) {
  copy::Order order{.action = action,
                    .checksum = one_in(random_, 3),
                    .sole_file = one_in(random_, 3),
                    .destination = path(),
                    .sources = {}};
  if (one_in(random_, 20)) order.version = static_cast<std::uint32_t>(random_());
  if (action == copy::Order::Action::kPull)
    for (auto i = below(random_, 4); i > 0; --i) order.sources.push_back(path());
  listed_ = answered_ = file_ = 0;
  return {copy::kControlTag, block(copy::encode(order).view())};
}

CopyMaker::Made CopyMaker::agreement() {
  const copy::Reply reply{.agreed = !one_in(random_, 20),
                          .sole_file = one_in(random_, 3),
                          .later = one_in(random_, 20),
                          .reason = path()};
  return {copy::kControlTag, block(copy::encode(reply).view())};
}

copy::Piece CopyMaker::piece() {
  copy::Piece piece{.first = one_in(random_, 20) ? number() : listed_, .last = one_in(random_, 12), .entries = {}};
  for (auto i = below(random_, 12); i > 0; --i) {
    copy::Entry entry{.kind = one_in(random_, 4) ? copy::Kind::kFolder : copy::Kind::kFile, .path = path()};
    entry.size = one_in(random_, 10) ? std::min(number(), copy::kMaxFile) : below(random_, 20000);
    entry.mtime = static_cast<std::int64_t>(one_in(random_, 10) ? number() : 1000000000);
    entry.mode = static_cast<std::uint32_t>(below(random_, 01000));
    piece.entries.push_back(entry);
  }
  listed_ += piece.entries.size();
  return piece;
}

copy::Answers CopyMaker::answers() {
  copy::Answers answers{.first = one_in(random_, 20) ? number() : answered_, .answers = {}};
  for (auto i = below(random_, 12); i > 0; --i) {
    copy::Answer answer{.request = static_cast<copy::FileRequest>(below(random_, 4)), .size = 0, .checksum = {}};
    if (answer.request == copy::FileRequest::kContinue || answer.request == copy::FileRequest::kCompare)
      answer.size = number();
    answers.answers.push_back(answer);
  }
  answered_ += answers.answers.size();
  return answers;
}

copy::Results CopyMaker::results() {
  copy::Results results{.failures = {}, .done = one_in(random_, 8), .counts = {}};
  for (auto i = below(random_, 3); i > 0; --i)
    results.failures.push_back({one_in(random_, 2) ? number() : below(random_, 20), path()});
  results.counts.files = number();
  results.counts.bytes = number();
  return results;
}

void CopyMaker::put_record(copy::RecordWriter& writer) {
  const std::uint64_t size = one_in(random_, 10) ? number() : below(random_, 20000);
  switch (below(random_, 12)) {
    case 0:
    case 1:
    case 2: {
      copy::Begin begin{.index = one_in(random_, 10) ? number() : file_++,
                        .size = size,
                        .mtime = static_cast<std::int64_t>(number()),
                        .mode = 0644};
      begin.offset = one_in(random_, 4) ? number() : 0;
      begin.same = one_in(random_, 10);
      return writer.put(begin);
    }
    case 3:
    case 4:
    case 5:
    case 6: {
      const auto bytes = below(random_, 4000);
      std::memset(writer.room(bytes).data(), 0xab, bytes);
      return writer.filled(bytes);
    }
    case 7: return writer.put(copy::Hole{one_in(random_, 2) ? number() : below(random_, 20000)});
    case 8:
    case 9: return writer.put(copy::End{});
    case 10:
      return one_in(random_, 2) ? writer.put(copy::Abandon{one_in(random_, 2) ? number() : file_, path()})
                                : writer.put(copy::Note{one_in(random_, 2), path()});
    default:
      if (one_in(random_, 10)) writer.put(copy::Finish{});
  }
}

std::vector<std::byte> CopyMaker::records() {
  std::vector<std::byte> all;
  copy::RecordWriter writer(1 << 20, [&](Bytes message) { all = block(message.view()); });
  for (auto i = 1 + below(random_, 12); i > 0; --i) put_record(writer);
  writer.flush();
  return all;
}

CopyMaker::Made CopyMaker::of(Tag tag) {
  using Action = copy::Order::Action;
  Made made{tag, {}};
  switch (tag) {
    case copy::kControlTag:
      made = one_in(random_, 2) ? order(any_of(random_, {Action::kPush, Action::kPull, Action::kBye})) : agreement();
      break;
    case copy::kPlanTag: made.bytes = block(copy::encode(piece()).view()); break;
    case copy::kDataTag: made.bytes = records(); break;
    default:
      made.bytes = one_in(random_, 3) ? block(copy::encode(results()).view()) : block(copy::encode(answers()).view());
  }
  if (one_in(random_, 40) && !made.bytes.empty())
    made.bytes[below(random_, made.bytes.size())] = static_cast<std::byte>(random_());
  if (one_in(random_, 100)) made.bytes.resize(below(random_, made.bytes.size() + 20));
  return made;
}

CopyMaker::Made CopyMaker::next() {
  // Orders and replies are few: the rest of a copy comes after them.
  const Tag tags[] = {copy::kPlanTag, copy::kDataTag, copy::kBackTag};
  return of(one_in(random_, 12) ? copy::kControlTag : any_of(random_, tags));
}

}  // namespace maki::wan::fuzz
