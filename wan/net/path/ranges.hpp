// Numbers as ranges that neither overlap nor touch.
#pragma once

#include <cstdint>
#include <map>

namespace maki::wan {

class Ranges {
 public:
  using Map = std::map<std::uint64_t, std::uint64_t>;  // first -> last

  bool overlaps(std::uint64_t first, std::uint64_t last) const;
  // Of numbers that are not there yet. Joined with the ranges that it touches; throws ProtocolError where there would be
  // more ranges than any order of arrival can leave.
  void add(std::uint64_t first, std::uint64_t last);
  void remove_first() { map_.erase(map_.begin()); }

  const Map& map() const { return map_; }

 private:
  Map map_;
};

}  // namespace maki::wan
