// The first message on a path of mpw.h, both ways: who is there, and which ports its channels have.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wan/net/path.hpp"

namespace maki::wan::mpw {

inline constexpr Tag kGreetingTag = 0;
inline constexpr Tag kFirstLane = 1;  // the tag of a path's first channel
inline constexpr std::size_t kMaxChannels = 8192;
inline constexpr std::size_t kMaxGreeting = 32 + 4 * kMaxChannels;

struct Greeting {
  std::uint64_t ticket = 0;  // random: the side with the lower one decides
  std::vector<int> ports;    // of the channels that look for a partner, in order
};

std::vector<std::byte> encode(const Greeting& greeting);
// Throws ProtocolError for anything that encode() cannot have made.
Greeting decode_greeting(std::span<const std::byte> bytes);

// Those of `mine` whose channels have a partner, in the order that makes them a path's channels 0, 1, ...: equal ports are
// partners; where no port is on both sides (one was forwarded under another number), the first is the first's and so
// on. Throws Error where that leaves channels alone.
std::vector<int> partners(const std::vector<int>& mine, const std::vector<int>& theirs);

}  // namespace maki::wan::mpw
