#include "wan/net/path/ranges.hpp"

#include <iterator>

#include "wan/net/error.hpp"

namespace maki::wan {
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

}  // namespace maki::wan
