// One block of a tree (host/let/blocks.hpp) as a message between sites.
//
// A rebuild's: a header, then the block's sections. Where blocks are compressed, shapes have a byte each in place of
// four, and masses are left out where all are the same. A reuse step's has the block's payload and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "host/let/blocks.hpp"
#include "wan/sites/ring.hpp"

namespace maki::sites {

struct BlockHeader {
  std::uint64_t particles = 0, multipoles = 0, cells = 0;
  std::uint32_t compressed = 0;
  std::uint32_t mass = 0;  // the bits of a mass that all particles have; 0 where masses follow
  std::uint64_t shape_bytes = 0;
  BlockCounts counts() const { return {particles, multipoles, cells}; }
};

// A leaf of up to 244 particles, a divided cell (245 to 252) and a closed one have one byte, a larger leaf five.
void append_shapes(std::span<const std::uint32_t> shapes, Message& to);
// `count` shapes out of all of `from`; nothing where they do not fit.
std::optional<std::vector<std::uint32_t>> read_shapes(std::span<const std::byte> from, std::uint64_t count);

// `message` holds room for the header and then the block's payload already; `rest` is what follows the payload in the
// block: shapes and, where it is compressed, masses.
void finish_block_message(const BlockCounts& counts, bool compress, std::span<const std::byte> rest, Message& message);

// The header, where the message may be that of a block of these settings.
std::optional<BlockHeader> read_block_header(const Message& message, bool compress);
// What follows the payload in the block; nothing where the message's length is not right.
std::optional<std::vector<std::byte>> read_rest_of_block(const Message& message, const BlockHeader& header);
// Whether that begins with the shapes of a tree that has as many of all as the block says: a forest is built from them
// without another look, and walked with a stack that is as deep as a tree can be.
bool is_tree(std::span<const std::byte> rest, const BlockCounts& counts);

}  // namespace maki::sites
