#include "wan/net/path/received_set.hpp"

#include <iterator>

#include "wan/net/byte_codec.hpp"
#include "wan/net/error.hpp"

namespace maki::wan {

// ---- ranges --------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kMostRanges = 1 << 18;  // far beyond what so many streams can leave open

}  // namespace

bool Ranges::overlaps(std::uint64_t first, std::uint64_t last) const {
  const auto after = map_.upper_bound(last);
  return after != map_.begin() && std::prev(after)->second >= first;
}

void Ranges::add(std::uint64_t first, std::uint64_t last) {
  const auto after = map_.upper_bound(first);
  const bool joins_after = after != map_.end() && after->first - 1 == last;
  const bool joins_before = after != map_.begin() && std::prev(after)->second + 1 == first;
  const std::uint64_t end = joins_after ? after->second : last;
  if (joins_before) {
    std::prev(after)->second = end;
    if (joins_after) map_.erase(after);
    return;
  }
  if (!joins_after && map_.size() >= kMostRanges) throw ProtocolError("What comes in leaves too many gaps");
  const auto hint = joins_after ? map_.erase(after) : after;
  map_.emplace_hint(hint, first, end);
}

// ---- sequence numbers ----------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
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
  ByteWriter out;
  out.put(all_up_to_);
  for (const auto& [first, last] : ranges()) {
    if (out.bytes().size() + 2 * kWord > limit) break;
    out.put(first);
    out.put(last);
  }
  return out.take();
}

ReceivedSet ReceivedSet::decode(std::span<const std::byte> bytes) {
  if (bytes.size() < kWord || bytes.size() % (2 * kWord) != kWord)
    throw ProtocolError("An acknowledgement has an impossible size");
  ByteReader in(bytes, "An acknowledgement", "An acknowledgement makes no sense");
  ReceivedSet set;
  set.all_up_to_ = in.number<std::uint64_t>();
  std::uint64_t before = set.all_up_to_;
  while (in.left() > 0) {
    const auto first = in.number<std::uint64_t>(), last = in.number<std::uint64_t>();
    if (first <= before || first - before < 2 || last < first)
      throw ProtocolError("An acknowledgement has ranges that overlap or stand in the wrong order");
    set.ranges_.add(first, last);
    before = last;
  }
  return set;
}

}  // namespace maki::wan
