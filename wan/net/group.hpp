// Calls over several paths at once (MPWide's cycle, scatter, gather and relay).
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
// Messages keep their order; at most `limit` bytes each.
void relay(Path& one, Path& other, std::span<const Tag> tags, std::size_t limit, const std::function<bool()>& stop = {});

}  // namespace maki::wan
