// Which sequence numbers have come in: all up to one, and ranges beyond it. This is also what an acknowledgement says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wan/net/path/ranges.hpp"

namespace maki::wan {

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
