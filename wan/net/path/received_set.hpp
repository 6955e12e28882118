// Which numbers have come in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace maki::wan {

// Numbers as ranges that neither overlap nor touch.
class Ranges {
 public:
  using Map = std::map<std::uint64_t, std::uint64_t>;  // first -> last

  bool overlaps(std::uint64_t first, std::uint64_t last) const;
  // Of numbers that are not there yet. Joined with the ranges that it touches; throws ProtocolError where there would
  // be more ranges than any order of arrival can leave.
  void add(std::uint64_t first, std::uint64_t last);
  void remove_first() { map_.erase(map_.begin()); }

  const Map& map() const { return map_; }

 private:
  Map map_;
};

// Which sequence numbers have come in: all up to one, and ranges beyond it. This is also what an acknowledgement says.
class ReceivedSet {
 public:
  bool add(std::uint64_t sequence);  // false where it was there already
  bool contains(std::uint64_t sequence) const;
  std::uint64_t all_up_to() const { return all_up_to_; }
  const Ranges::Map& ranges() const { return ranges_.map(); }  // first -> last, beyond all_up_to

  // Payload of a kAck frame, at most `limit` bytes: what does not fit are the highest ranges, which a later one tells.
  std::vector<std::byte> encode(std::size_t limit) const;
  // Throws ProtocolError for what encode() cannot have made.
  static ReceivedSet decode(std::span<const std::byte> bytes);

 private:
  std::uint64_t all_up_to_ = 0;
  Ranges ranges_;
};

}  // namespace maki::wan
