// Exchange of local essential trees between sites, as by LocalEssentialTree between ranks
// (host/let/local_essential_tree.hpp), but for slabs in place of the ranks' boxes, and with one message each way and no
// agreement beforehand.
#pragma once

#include <cstdint>
#include <memory>

#include "host/let/local_essential_tree.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/tree/octree.hpp"
#include "kernels/tree/walk.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {

// The region that holds a site's particles: its slab widened by `drift` (sides) on both faces, the whole box in y and
// z. Distances to it are those to the nearer face, also across the edge of the box, whatever its thickness. Without
// periodic boundaries, particles are in the middle half of the box.
WalkTarget slab_target(const Slabs& slabs, int site, bool periodic, float drift);

// Slabs with room for particles that have left theirs: each is widened by `drift` (sides) on both faces.
struct WidenedSlabs {
  const Slabs& slabs;
  float drift = 0;
};

class SiteTrees {
 public:
  // Collective over the site's ranks. `options.compress`: alike at all sites.
  SiteTrees(Sites& sites, const LetOptions& options);
  ~SiteTrees();

  // As LocalEssentialTree::send_whole_cells(), for the neighbours' slabs.
  void send_whole_cells(int level);

  // Selects parts of each rank's tree for the slabs of the partners, the neighbours (with a cutoff) or all other sites
  // (without), and sends them; every partner gets a message, maybe an empty one. `number` rises from call to call,
  // alike at all sites. Otherwise as LocalEssentialTree::rebuild().
  void rebuild(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
               const WidenedSlabs& regions, std::uint64_t number);
  // Sends the payload alone, for the selection of the last rebuild().
  void update(const Stream& stream, Octree& tree, const SourceParticle* particles, std::uint64_t number);
  // Whether the first message of every partner has arrived, so that finish() hardly waits. Known at the gateway only;
  // false on other ranks until finish().
  bool arrived();
  void finish(const Stream& stream);  // waits for all messages; the forest may be used by work queued on `stream`

  // The forest and its particles as in LocalEssentialTree: blocks from all ranks of all partner sites, the same on
  // every rank of this site, in the order of the sites in the ring and then of their ranks. Counts: messages sent by
  // this rank, and everything received.
  Octree& forest();
  const SourceParticle* particles() const;
  std::uint64_t particle_count() const;
  const LetCounts& counts() const;
  std::size_t bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace maki::sites
