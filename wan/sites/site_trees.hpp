// Local essential trees between sites: what LocalEssentialTree is between ranks (host/let/local_essential_tree.hpp),
// for slabs in place of ranks' boxes, with nothing agreed on beforehand: one message each way.
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

// What a site's particles are within, `drift` (sides) beyond the faces of its slab at most: the whole box in y and z.
// Distances to it are those to the nearer face, also across the box's edge, however thick it is (see the tests). Where
// the box is not periodic, particles are in its middle half.
WalkTarget slab_target(const Slabs& slabs, int site, bool periodic, float drift);

class SiteTrees {
 public:
  // Collective over the site's ranks. `options.compress`: alike at all sites.
  SiteTrees(Sites& sites, const LetOptions& options);
  ~SiteTrees();

  // As LocalEssentialTree::send_whole_cells(), for the neighbours' slabs.
  void send_whole_cells(int level);

  // Each rank's tree is cut for the slabs of the neighbours (with a cutoff) or of all other sites (without), taken as
  // wider by `drift` (sides) on both sides, and goes on its way. `number` rises from call to call, alike at all sites.
  // A message goes to every partner, also an empty one: nobody asks. As LocalEssentialTree::rebuild() otherwise.
  void rebuild(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
               const Slabs& slabs, float drift, std::uint64_t number);
  // Payload of the last rebuild's selection alone.
  void update(const Stream& stream, Octree& tree, const SourceParticle* particles, std::uint64_t number);
  // Whether the first of every partner's messages are here, so that finish() would wait little. The gateway knows; on
  // other ranks it is false until finish().
  bool arrived();
  void finish(const Stream& stream);  // waits; the forest is there for work queued on `stream`

  // As LocalEssentialTree's: blocks of all ranks of all partner sites, the same on every rank of this site, in the
  // order of the sites in the ring and then of their ranks. Counts are of this rank's own part of what is sent, and of
  // all that is received.
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
