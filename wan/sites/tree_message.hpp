// One block of a tree (host/let/blocks.hpp) as a message between sites.
//
// The message of a rebuild has a header and then the sections of the block. In compressed blocks, shapes take one byte
// in place of four, and equal masses are sent once. The message of a reuse step is the payload of the block alone.
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
// Decodes `count` shapes, which take all of `from`; nullopt where they do not.
std::optional<std::vector<std::uint32_t>> read_shapes(std::span<const std::byte> from, std::uint64_t count);

// Completes a message that holds room for the header and then the payload. `rest`: the bytes that follow the payload in
// the block, which are shapes and, in compressed blocks, masses.
void finish_block_message(const BlockCounts& counts, bool compress, std::span<const std::byte> rest, Message& message);

// The header; nullopt where the message cannot be that of a block with this setting.
std::optional<BlockHeader> read_block_header(const Message& message, bool compress);
// The bytes that follow the payload in the block; nullopt where the length of the message is wrong.
std::optional<std::vector<std::byte>> read_rest_of_block(const Message& message, const BlockHeader& header);
// Whether `rest` begins with the shapes of a tree with the given counts. Forests are built from them without further
// checks, and walked with a stack that is as deep as a tree can be.
bool is_tree(std::span<const std::byte> rest, const BlockCounts& counts);

}  // namespace maki::sites
