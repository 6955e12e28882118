#include "wan/net/path/received_set.hpp"

#include <cstring>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

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
  return sequence <= all_up_to_ || ranges_.overlaps(sequence, sequence);
}

bool ReceivedSet::add(std::uint64_t sequence) {
  if (contains(sequence)) return false;
  ranges_.add(sequence, sequence);
  if (const auto first = ranges().begin(); first->first == all_up_to_ + 1) {
    all_up_to_ = first->second;
    ranges_.remove_first();
  }
  return true;
}

std::vector<std::byte> ReceivedSet::encode(std::size_t limit) const {
  std::vector<std::byte> bytes;
  put(bytes, all_up_to_);
  for (const auto& [first, last] : ranges()) {
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
    set.ranges_.add(first, last);
    before = last;
  }
  return set;
}

}  // namespace maki::wan
