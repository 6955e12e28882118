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

class SiteTrees {
 public:
  // Collective over the site's ranks. `options.compress`: alike at all sites.
  SiteTrees(Sites& sites, const LetOptions& options);
  ~SiteTrees();

  // Each rank's tree is cut for the slabs of the neighbours (with a cutoff) or of all other sites (without), taken as
  // wider by `drift` (sides) on both sides, and goes on its way. `number` rises from call to call, alike at all sites.
  // A message goes to every partner, also an empty one: nobody asks. As LocalEssentialTree::rebuild() otherwise.
  void rebuild(const Stream& stream, Octree& tree, const SourceParticle* particles, const WalkOptions& walk,
               const Slabs& slabs, float drift, std::uint64_t number);
  // Payload of the last rebuild's selection alone.
  void update(const Stream& stream, Octree& tree, const SourceParticle* particles, std::uint64_t number);
  bool arrived();                      // whether finish() would not wait; the same on all ranks only by chance
  void finish(const Stream& stream);   // waits; the forest is there for work queued on `stream`

  // As LocalEssentialTree's: blocks of all ranks of all partner sites, the same on every rank of this site.
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
