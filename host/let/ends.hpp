// The two ends of an exchange of local essential trees, whatever carries the blocks between them: ranks' messages
// (local_essential_tree.hpp) or sites' (wan/sites/site_trees.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/let/forest.hpp"
#include "host/let/local_essential_tree.hpp"

namespace maki {

// The criterion by which `walk` opens cells, with the options' margins; `whole_cells` as in
// LocalEssentialTree::send_whole_cells(), 0 where that was not called.
LetRule let_rule(const WalkOptions& walk, const LetOptions& options, int whole_cells = 0);

// Bytes of one block's message; on a reuse step it has no shapes and no masses.
inline std::uint64_t let_message_bytes(const Blocks& blocks, std::size_t block, bool with_shapes) {
  return with_shapes ? blocks.message_bytes(block) : blocks.payload_bytes(block);
}

// What is received: its blocks, kept between rebuilds, and the forest of them.
struct LetReceiving {
  Blocks blocks;
  DeviceBuffer<std::byte> packed{"let.incoming"};
  Forest forest;

  // Makes room in `packed` for blocks of these counts, block b at blocks.begin(b).
  void expect(const Stream& stream, const std::vector<BlockCounts>& counts, bool compress);
  // Makes the forest from `packed`, once all blocks have arrived. particles_alone: the forest's cells are not needed.
  void unpack(const Stream& stream, bool with_shapes, bool particles_alone = false);
  std::size_t bytes() const { return packed.capacity() + blocks.device_bytes() + forest.bytes(); }
};

}  // namespace maki
