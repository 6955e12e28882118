// Local essential trees: of each rank's tree, the cells and particles that another rank's particles need
// (Salmon & Warren 1994; docs/design.md, "Many ranks").
//
// What arrives stays a forest: one Octree whose cell 0 is the root of a small tree of domains, whose other cells are
// the ranks' trees, each cut where this rank's domain needs no more of it. Lists over it are made by walk_tree and used
// by evaluate_lists as those of the local tree. On a reuse step the kept selection sends its payload alone, which
// overwrites the forest's in place.
#pragma once

#include <cstdint>
#include <memory>

#include "host/comm/communicator.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"

namespace maki {

struct LetOptions {
  // A cell is sent undivided when it satisfies the opening criterion for the whole box of the other rank's particles
  // with (1 + skin) of the distance: what particles may move until the forest is too coarse.
  float skin = 0.1f;
  // The cutoff is taken longer by this fraction of itself, for cells that come within reach until the next rebuild. The
  // split's force is next to nothing there (docs/design.md, "Force split"), so it need not be what particles move.
  float reach_skin = 0.02f;
  // Positions and second moments in 16 bits (compression.hpp): half the bytes of a reuse step, two thirds of a
  // rebuild's. Alike on all ranks. Error of forces (50 000 particles in a Plummer sphere or in clumps, 8 ranks, theta
  // 0.5 and 0.3): median and 99 % as without to within 2 %.
  bool compress = false;
};

struct LetCounts {                                           // of this rank, of the last rebuild() or update()
  std::uint64_t cells_sent = 0, particles_sent = 0;          // entries
  std::uint64_t cells_received = 0, particles_received = 0;  // own nodes of the tree of domains not counted
  std::uint64_t bytes_sent = 0, messages_sent = 0;           // no message is empty
  std::uint64_t bytes_received = 0, messages_received = 0;
  // Of the host, which by NCCL waits until the stream has been told to, and no longer.
  double exchange_seconds = 0;  // from begin to the last byte's arrival
  double waited_seconds = 0;    // of these, in finish(): not hidden behind other work
};

class LocalEssentialTree {
 public:
  // Collective.
  LocalEssentialTree(const Communicator& ranks, const LetOptions& options = {});
  ~LocalEssentialTree();

  // From the next rebuild on only particles count, for a tree that is to be built of them and one's own: all in those
  // cells of `level` that walks for the particles of the other rank may meet (host/let/whole_cells.hpp). The forest's
  // cells have no sums and boxes then. The walk has a cutoff, and `drift` is not read.
  void send_whole_cells(int level);

  // Collective. After the tree was built and swept; `tree.cells` is 0 on a rank without particles, which sends and gets
  // nothing. Gathers all ranks' boxes, selects on the device, agrees on sizes, and leaves the messages on their way:
  // one to each rank that needs anything of this one. With a cutoff these are the ranks within reach; without, all
  // others, of which far ones get one cell. `tree` and `particles` may be used meanwhile but not changed until
  // finish(). `drift` (sides): how far the ranks' particles may move until the next rebuild; their boxes are taken as
  // larger by so much. Throws std::logic_error where finish() is due, and Error where a rank's entries are 2^32 or
  // more.
  void rebuild(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
               float drift = 0);
  // The same for the selection of the last rebuild, after a new sweep of the same tree: payload only.
  void update(const Stream& stream, Octree& tree, const SourceParticle* particles);
  // Moves messages on while other work goes on; cheap. Whether there is nothing left to move.
  bool progress();
  // Whether messages move on in progress() only.
  bool needs_host() const;
  // Waits for what was begun. Afterwards the forest is there for work queued on `stream`.
  void finish(const Stream& stream);

  // cells = 0 where nothing was imported. A cell of count kClosedCell is always a multipole. Sums and boxes of divided
  // and closed cells are those that the owner has swept, which hold what did not come here, too; those of leaves are
  // swept here from their particles and so are the same but for the last bit, and those of the small tree's nodes are
  // swept from the ranks' roots. `first` is valid for leaves; `count` of a divided cell is only more than any
  // small_cell; `level_begin` names the levels of the small tree's nodes alone, so nobody else sweeps a forest.
  Octree& forest();
  const SourceParticle* particles() const;  // imported; leaves name ranges of it
  std::uint64_t particle_count() const;

  const LetCounts& counts() const;
  std::size_t bytes() const;  // of device memory

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace maki
