// Blocks from a tree, and a forest from blocks, all on the device. The blocks travel in ranks' messages
// (local_essential_tree.hpp) or sites' (wan/sites/site_trees.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/let/blocks.hpp"
#include "kernels/tree/walk.hpp"

namespace maki {

// Selection, on the device, of the cells and particles of a tree that the particles within given boxes need (Salmon &
// Warren 1994).

// The criterion for a cell and a box; the same decisions on every backend (kernels/tree/opening.hpp).
struct LetRule {
  OpeningRule opening;    // with the reach of the cutoff and a margin
  float distance_factor;  // factor on the opening distance, beyond which a cell is sent closed
  bool cutoff;
  std::uint32_t small_cell;
  bool whole = false;  // no cell is far enough: all particles within reach go
};

// The entries of all blocks, block after block in the order of the targets, each as in blocks.hpp; device memory.
struct LetSelection {
  DeviceBuffer<std::uint32_t> shapes{"let.shapes"};          // by cell of the blocks
  DeviceBuffer<std::uint32_t> multipoles{"let.multipoles"};  // indices of the tree's cells
  DeviceBuffer<std::uint32_t> particles{"let.particles"};    // indices of particles
  DeviceBuffer<std::uint32_t> parents{"let.parents"};        // by particle (find_parents); only for compression
};

// For each target box:
//  - a cell whose box is beyond reach is left out, and so is a cell whose children are all left out;
//  - a cell of at most small_cell particles, or a near one without children, is sent as a leaf with its particles;
//  - a cell that is far enough from the box is sent closed, unless the rule is whole;
//  - any other is sent divided, with those of its children that are not left out.
// Returns the counts for each target: nothing at all (0 cells) if the whole tree is beyond reach. A launch or two for
// each level, down and up, for all targets together; the host waits once a level. Scratch: 17 bytes for each cell that
// is looked at for a target. Throws Error where the entries for all targets together are 2^32 or more.
std::vector<BlockCounts> select_essential(const Stream& stream, Octree& tree, const LetRule& rule,
                                          const std::vector<WalkTarget>& targets, LetSelection& selection);

// The small tree whose leaves are the roots of other ranks' trees. Nodes are stored level by level, the root first; the
// roots of the ranks' trees follow as its last level. Children are contiguous, at most 8 a node, in the order of ranks:
// neighbours in that order are neighbours in space (multisection.hpp).
struct DomainTree {
  std::vector<std::uint32_t> first_child;  // of the nodes
  std::vector<std::uint8_t> child_count;   // 1 to 8
  std::vector<std::uint32_t> level_begin;  // of the nodes' levels; ends with nodes()
  std::uint32_t roots = 0;                 // at [nodes(), nodes() + roots)

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(first_child.size()); }
  std::uint32_t cells() const { return nodes() + roots; }
};

// Without roots there are no nodes, else at least one. The nodes of a level have nearly equally many children.
DomainTree make_domain_tree(std::uint32_t roots);

// The sending side: a selection, and its blocks, kept between rebuilds.
struct LetSending {
  LetSelection selection;
  Blocks blocks;
  DeviceBuffer<std::byte> packed{"let.outgoing"};

  // Packs all blocks into `packed`, block b at blocks.begin(b), in one launch; on a reuse step without their shapes and
  // masses.
  void pack(const Stream& stream, Octree& tree, const SourceParticle* particles, bool with_shapes);
};

// The imported trees as one octree. Its cells: those of the tree of domains (DomainTree), whose leaves are the blocks'
// roots, then block after block the cells below a root, in the block's order. `level_begin` has only the levels of the
// domain tree's nodes; `first` is valid for leaves; `count` is the number of particles of a leaf, kClosedCell, or for a
// divided cell a number above any small_cell.
struct Forest {
  Octree tree;
  DeviceBuffer<SourceParticle> particles{"let.forest"};
  DeviceBuffer<std::uint32_t> multipoles{"let.places"};  // by multipole of the blocks: its cell
  DeviceBuffer<std::uint32_t> parents{"let.parents"};    // by particle, of compressed blocks (find_parents)

  Forest();
};

// Sets the cells' topology from the blocks' shapes, and reference points for the first sweep. No blocks give no cells.
// Throws Error for 2^32 or more cells or particles.
void build_forest(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::byte>& packed,
                  const DomainTree& domains, Forest& forest);
// Fills in particles and multipoles from the blocks. Leaves are swept from their particles (sweep_octree), nodes of the
// domain tree from their children; not with `particles_alone`. `with_masses`: the blocks came with shapes and masses.
void fill_forest(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::byte>& packed, bool with_masses,
                 Forest& forest, bool particles_alone = false);

// The receiving side: its blocks, kept between rebuilds, and their forest.
struct LetReceiving {
  Blocks blocks;
  DeviceBuffer<std::byte> packed{"let.incoming"};
  Forest forest;

  // Makes room in `packed` for blocks of these counts, block b at blocks.begin(b).
  void expect(const Stream& stream, const std::vector<BlockCounts>& counts, bool compress);
  // Makes the forest from `packed`, once all blocks have arrived. particles_alone: the forest's cells are not needed.
  void unpack(const Stream& stream, bool with_shapes, bool particles_alone = false);
};

}  // namespace maki
