#include "wan/net/path/received_set.hpp"

#include <cstring>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kMostRanges = 1 << 18;  // far beyond what so many streams can leave open

void put(std::vector<std::byte>& bytes, std::uint64_t word) {
  const std::size_t at = bytes.size();
  bytes.resize(at + kWord);
  std::memcpy(bytes.data() + at, &word, kWord);
}

std::uint64_t get(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word;
  std::memcpy(&word, bytes.data() + at, kWord);
  return word;
}

}  // namespace

bool ReceivedSet::contains(std::uint64_t sequence) const {
  if (sequence <= all_up_to_) return true;
  auto after = ranges_.upper_bound(sequence);
  return after != ranges_.begin() && std::prev(after)->second >= sequence;
}

bool ReceivedSet::add(std::uint64_t sequence) {
  if (contains(sequence)) return false;
  auto after = ranges_.upper_bound(sequence);
  const bool joins_after = after != ranges_.end() && after->first == sequence + 1;
  const bool joins_before = after != ranges_.begin() && std::prev(after)->second + 1 == sequence;
  if (joins_before && joins_after) {
    std::prev(after)->second = after->second;
    ranges_.erase(after);
  } else if (joins_before) {
    std::prev(after)->second = sequence;
  } else if (joins_after) {
    const std::uint64_t last = after->second;
    ranges_.erase(after);
    ranges_.emplace(sequence, last);
  } else {
    if (ranges_.size() >= kMostRanges) throw ProtocolError("The numbers of what comes in have too many gaps");
    ranges_.emplace(sequence, sequence);
  }
  if (const auto first = ranges_.begin(); first->first == all_up_to_ + 1) {
    all_up_to_ = first->second;
    ranges_.erase(first);
  }
  return true;
}

std::vector<std::byte> ReceivedSet::encode(std::size_t limit) const {
  std::vector<std::byte> bytes;
  put(bytes, all_up_to_);
  for (const auto& [first, last] : ranges_) {
    if (bytes.size() + 2 * kWord > limit) break;
    put(bytes, first);
    put(bytes, last);
  }
  return bytes;
}

ReceivedSet ReceivedSet::decode(std::span<const std::byte> bytes) {
  if (bytes.size() < kWord || bytes.size() % (2 * kWord) != kWord)
    throw ProtocolError("An acknowledgement has an impossible size");
  ReceivedSet set;
  set.all_up_to_ = get(bytes, 0);
  std::uint64_t before = set.all_up_to_;
  for (std::size_t at = kWord; at < bytes.size(); at += 2 * kWord) {
    const std::uint64_t first = get(bytes, at), last = get(bytes, at + kWord);
    if (first <= before || first - before < 2 || last < first)
      throw ProtocolError("An acknowledgement has ranges that overlap or stand in the wrong order");
    set.ranges_.emplace_hint(set.ranges_.end(), first, last);
    before = last;
  }
  return set;
}

}  // namespace maki::wan
