// Calls over several paths at once (MPWide's cycle, scatter, gather and relay).
//
// Where one of several paths is lost, the error comes when the others are done, so that no buffer is in use any more.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "wan/net/path.hpp"

namespace maki::wan {

// Sends on one path and receives on another at the same time. Size of what was received.
std::size_t cycle(Path& to, Path& from, Tag tag, std::span<const std::byte> message, std::span<std::byte> buffer);
Bytes cycle_any(Path& to, Path& from, Tag tag, std::span<const std::byte> message, std::size_t limit);

// Part i goes to path i, all at once; returns when all may be used again. The paths' order is the caller's.
void scatter(std::span<Path* const> paths, Tag tag, std::span<const std::span<const std::byte>> parts);
// Buffer i takes the message of path i; sizes of what came.
std::vector<std::size_t> gather(std::span<Path* const> paths, Tag tag, std::span<const std::span<std::byte>> buffers);

// Passes every message of the tags on, both ways, until `stop` says so or a path ends (orderly: returns; else throws PathError).
// Messages keep their order; at most `limit` bytes each. Each is passed on when it is there as a whole: where bytes
// should flow through, there is relay/relay.hpp. What had come in but was not passed on when it stopped is lost.
void relay(Path& one, Path& other, std::span<const Tag> tags, std::size_t limit,
           const std::function<bool()>& stop = {});

// The same over any number of paths, where a message may change its tag on the way.
struct RelayLane {
  Path* one = nullptr;
  Tag one_tag = 0;
  Path* other = nullptr;
  Tag other_tag = 0;
};
void relay(std::span<const RelayLane> lanes, std::size_t limit, const std::function<bool()>& stop = {});

}  // namespace maki::wan
