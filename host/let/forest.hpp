// Blocks out of a tree, and a forest out of blocks; all on the device.
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

}  // namespace maki
