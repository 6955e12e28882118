// Blocks out of a tree, and a forest out of blocks; all on the device. Whatever carries the blocks between the two: ranks'
// messages (local_essential_tree.hpp) or sites' (wan/sites/site_trees.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/let/blocks.hpp"
#include "host/let/domain_tree.hpp"
#include "host/let/selection.hpp"

namespace maki {

// What is sent: a selection, and its blocks, kept between rebuilds.
struct LetSending {
  LetSelection selection;
  Blocks blocks;
  DeviceBuffer<std::byte> packed{"let.outgoing"};

  // Packs all blocks into `packed`, block b at blocks.begin(b), in one launch; without their shapes and masses on a
  // reuse step.
  void pack(const Stream& stream, Octree& tree, const SourceParticle* particles, bool with_shapes);
  std::size_t bytes() const { return packed.capacity() + blocks.device_bytes() + selection.bytes(); }
};

// The imported trees as one. Its cells: those of the tree of domains (domain_tree.hpp), then block after block the
// cells below a root, as in the block. `level_begin` holds the levels of the tree of domains' nodes only; `first` is
// valid for leaves; `count` is the particles of a leaf, kClosedCell, or for a divided cell more than any small_cell.
struct Forest {
  Octree tree;
  DeviceBuffer<SourceParticle> particles{"let.forest"};
  DeviceBuffer<std::uint32_t> multipoles{"let.places"};  // by multipole of the blocks: its cell
  DeviceBuffer<std::uint32_t> parents{"let.parents"};    // by particle, of compressed blocks (find_parents)

  Forest();
  std::size_t bytes() const;
};

// Cells' topology from the blocks' shapes, and reference points for the first sweep. No blocks make no cells. Throws
// Error for 2^32 cells or particles and more.
void build_forest(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::byte>& packed,
                  const DomainTree& domains, Forest& forest);
// Fills in particles and multipoles from the blocks; leaves are swept from their particles (sweep_octree), nodes of the
// tree of domains from their children, unless `particles_alone`. `with_masses`: the blocks came with all their
// sections.
void fill_forest(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::byte>& packed, bool with_masses,
                 Forest& forest, bool particles_alone = false);

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
