// Local essential trees: for each pair of ranks, the cells and particles of one's tree that the other's particles need
// (Salmon & Warren 1994; docs/design.md, "Many ranks").
//
// The received trees form a forest: one Octree whose cell 0 is the root of a small tree of domains. Its other cells are
// the ranks' trees, each cut where this rank's domain needs no more of it. walk_tree makes lists over it and
// evaluate_lists uses them as those of the local tree. A reuse step sends only the payload of the kept selection, which
// overwrites the forest's in place.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/comm/device_payload.hpp"
#include "host/let/forest.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/opening.hpp"
#include "kernels/tree/walk.hpp"

namespace maki {

struct LetOptions {
  // A cell is sent closed (undivided) where its distance from the box of the other rank's particles exceeds (1 + skin)
  // times the opening distance, so that the forest stays fine enough while particles move.
  float skin = 0.1f;
  // Fraction by which the cutoff is lengthened, for cells that come within reach before the next rebuild. Particles may
  // move further than this: the split's force is nearly zero there (docs/design.md, "Force split").
  float reach_skin = 0.02f;
  bool error_lengths = false;  // in forests, as in the trees that blocks are selected from (opening.hpp)
  // Positions and second moments in 16 bits (blocks.hpp): half the bytes of a reuse step, two thirds of a rebuild's.
  // The same on all ranks. Error of forces (50 000 particles in a Plummer sphere or in clumps, 8 ranks, theta 0.5 and
  // 0.3): median and 99 % are within 2 % of those without.
  bool compress = false;
};

// The criterion by which `walk` opens cells, with the options' margins; `whole_cells`: level of
// LocalEssentialTree::send_whole_cells(), 0 if that was not called.
LetRule let_rule(const WalkOptions& walk, const LetOptions& options, int whole_cells = 0);

// Counts of this rank for the last rebuild() or update().
struct LetCounts {
  std::uint64_t cells_sent = 0, particles_sent = 0;          // entries
  std::uint64_t cells_received = 0, particles_received = 0;  // own nodes of the tree of domains not counted
  std::uint64_t bytes_sent = 0, messages_sent = 0;           // no message is empty
  std::uint64_t bytes_received = 0, messages_received = 0;
  // Host times. With NCCL the host waits only until the stream's wait is queued.
  double exchange_seconds = 0;  // from the begin to the arrival of the last byte
  double waited_seconds = 0;    // part of these spent in finish(), not overlapped with other work
};

// For estimates: device bytes of a rank for the local essential trees that it receives, and for the kept selection of
// those that it sends, with `particles` on all ranks. `reach`: r_cut in sides, or 1 without a cutoff.
double let_bytes(double particles, double theta, double reach, int ranks);

class LocalEssentialTree {
 public:
  // Collective.
  LocalEssentialTree(const Communicator& ranks, const LetOptions& options = {});

  // From the next rebuild on sends ghosts instead of trees: all particles in those cells of `level` that walks for the
  // other rank's particles may visit (grow_to_whole_cells()). The receiver builds one tree over them and its own; the
  // forest's cells have no moments and boxes. The walk must have a cutoff, and `drift` is not read.
  void send_whole_cells(int level) { whole_cells_ = level; }

  // Called after the tree was built and swept. Collective; `tree.cells` is 0 on a rank without particles, which sends
  // and gets nothing. Gathers all ranks' boxes, selects on the device, agrees on sizes, and starts the messages: one to
  // each rank that needs anything of this one. With a cutoff these are the ranks within reach; without, all others, of
  // which far ones get one cell. `tree` and `particles` may be read meanwhile, but not changed until finish(). `drift`
  // (sides): how far the ranks' particles may move until the next rebuild; their boxes are enlarged by as much. Throws
  // std::logic_error where finish() is due, and Error where a rank's entries are 2^32 or more.
  void rebuild(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
               float drift = 0);
  // Sends the selection of the last rebuild again, after a new sweep of the same tree: payload only.
  void update(const Stream& stream, Octree& tree, const SourceParticle* particles);
  // Advances messages while other work goes on; cheap. Returns whether all have arrived.
  bool progress();
  // Whether messages advance only within progress().
  bool needs_host() const { return !arrived_ && transfer_->needs_host(); }
  // Waits for the exchange that rebuild() or update() began. Work queued on `stream` afterwards may use the forest.
  void finish(const Stream& stream);

  // `cells` is 0 if nothing was imported. A cell of count kClosedCell is always a multipole. Moments and boxes of
  // divided and closed cells are the owner's, over all their particles, sent or not. Those of leaves are swept here
  // from their particles, and agree but for the last bit; those of the small tree's nodes are swept from the ranks'
  // roots. `first` is valid for leaves; `count` of a divided cell is more than any small_cell. `level_begin` has only
  // the levels of the small tree's nodes, so no other code may sweep a forest.
  Octree& forest() { return in_.forest.tree; }
  const DeviceBuffer<SourceParticle>& particles() const { return in_.forest.particles; }  // leaves are ranges of it

  const LetCounts& counts() const { return counts_; }

 private:
  void select(const Stream& stream, Octree& tree, const WalkOptions& walk, float drift);
  void agree_on_sizes(const Stream& stream, const std::vector<BlockCounts>& to_each);
  void send(const Stream& stream, Octree& tree, const SourceParticle* particles, bool shapes);
  void wait(const Stream& stream);
  void count(std::span<const Communicator::Outgoing> sent, std::span<const Communicator::Incoming> received);

  const Communicator ranks_;
  const LetOptions options_;
  DevicePayload payload_;
  std::vector<int> to_, from_;  // ranks of the blocks
  LetSending out_;
  LetReceiving in_;
  LetCounts counts_;
  int whole_cells_ = 0;
  bool under_way_ = false, with_shapes_ = false, arrived_ = true;
  std::optional<DevicePayload::Transfer> transfer_;  // none where there are no messages
  WallClock::time_point begun_;
};

// ---- ghosts ---------------------------------------------------------------------------------------------------------

// Ghosts: the particles of other ranks with which a rank's tree equals the tree over all particles, wherever its walks
// can go.

// The level of the cells that ghosts complete, for so many particles in all: 1.5 to 12 particles a cell on average, so
// that the margins around a domain are thin and groups of neighbouring cells are still well filled. At least `least`.
int whole_cell_level(std::uint64_t particles, int least);

// How far beyond the cutoff r_cut (sides) a rank's ghosts may reach from its domain (sides).
double whole_cell_margin(int level);

// For estimates: the number of ghosts of a rank, for `particles` on all `ranks` of all `sites`. Its domain is taken as
// a cube, and ghosts from other sites for a slab go to all ranks. Also the bytes of a ghost in transit, at both ends.
double expected_ghosts(double particles, double r_cut, int ranks, int sites);
inline constexpr double kGhostSentBytes = 76;

// `target` (with half extents in units of the last bit, as from walk_target()) grown to all cells that its particles'
// walks can visit: the cells one level above `level` that it touches, which contain its groups, and all cells of
// `level` within r_cut (sides) of those.
WalkTarget grow_to_whole_cells(const WalkTarget& target, float r_cut, int level);

}  // namespace maki
