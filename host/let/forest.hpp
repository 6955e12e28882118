// Blocks out of a tree, and a forest out of blocks; all on the device. Whatever carries the blocks between the two: ranks'
// messages (local_essential_tree.hpp) or sites' (wan/sites/site_trees.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/let/blocks.hpp"
#include "kernels/tree/walk.hpp"

namespace maki {

// Selection, on the device, of the cells and particles of a tree that the particles within given boxes need (Salmon &
// Warren 1994).

// How a cell is judged for a box; the same decisions on every backend (kernels/tree/opening.hpp).
struct LetRule {
  OpeningRule opening;    // with the reach of the cutoff and a margin
  float distance_factor;  // of the distance at which a cell is sent undivided
  bool cutoff;
  std::uint32_t small_cell;
  bool whole = false;  // no cell is far enough: all particles within reach go
};

// Entries of all blocks, block after block in the order of targets and as blocks.hpp says; device memory.
struct LetSelection {
  DeviceBuffer<std::uint32_t> shapes{"let.shapes"};          // by cell of the blocks
  DeviceBuffer<std::uint32_t> multipoles{"let.multipoles"};  // which of the tree's cells
  DeviceBuffer<std::uint32_t> particles{"let.particles"};    // which particle
  DeviceBuffer<std::uint32_t> parents{"let.parents"};        // by particle (find_parents); for compression alone

  std::size_t bytes() const {
    return (shapes.capacity() + multipoles.capacity() + particles.capacity() + parents.capacity()) *
           sizeof(std::uint32_t);
  }
};

// For each target box:
//  - a cell whose box is beyond reach is left out, and so is one of which nothing is left;
//  - a cell of at most small_cell particles, or one without children that is near, goes as a leaf with its particles;
//  - a cell that is far enough from the box goes closed, unless the rule is whole;
//  - any other goes divided, with those of its children that are not left out.
// Returns what each target gets: nothing at all (0 cells) where the whole tree is beyond reach. A launch or two for
// each level, down and up, for all targets together; the host waits once a level. Scratch: 17 bytes for each cell that
// is looked at for a target. Throws Error where the entries for all targets together are 2^32 or more.
std::vector<BlockCounts> select_essential(const Stream& stream, Octree& tree, const LetRule& rule,
                                          const std::vector<WalkTarget>& targets, LetSelection& selection);

// The small tree whose leaves are the roots of other ranks' trees.

// Nodes stand level by level, the root at the front; the roots of the ranks' trees follow as its last level. Children
// stand side by side, at most 8 a node, in the order of ranks: neighbours in that order are neighbours in space
// (multisection.hpp).
struct DomainTree {
  std::vector<std::uint32_t> first_child;  // of the nodes
  std::vector<std::uint8_t> child_count;   // 1 to 8
  std::vector<std::uint32_t> level_begin;  // of the nodes' levels; ends with nodes()
  std::uint32_t roots = 0;                 // at [nodes(), nodes() + roots)

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(first_child.size()); }
  std::uint32_t cells() const { return nodes() + roots; }
};

// Of no nodes where there are no roots, else of one at least. Nodes of a level have alike many children.
DomainTree make_domain_tree(std::uint32_t roots);

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

// The imported trees as one. Its cells: those of the tree of domains (DomainTree), then block after block the
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
