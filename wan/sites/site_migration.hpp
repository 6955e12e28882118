// Migration of particles to the sites that own them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/domain/migrate.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {

// Particles of this rank outside of the site's slab are sent to the neighbours; particles that arrive go to any rank of
// the site. One message to each neighbour, empty or not; the wait is half a round trip. begin() sends and leaves the
// particles unchanged; finish() receives, removes the particles sent and appends those received: by site in the order
// of the ring, then by rank, then in their order there. Between the two, particles may be read. `extra` as in
// migrate().
// Throws Error, on all ranks, where a particle belongs to a site that is no neighbour: it has moved further than a slab
// is thick. With Reach::kAll every other site gets a message and no distance is too long, for the thin slabs of
// isolated sets. The counts returned are of this rank; messages are one for each neighbour.
class SiteMigration {
 public:
  enum class Reach { kNeighbours, kAll };
  explicit SiteMigration(Sites& sites, Reach reach = Reach::kNeighbours);
  void begin(const Stream& stream, const Slabs& slabs, Particles& particles,
             std::span<DeviceBuffer<float>* const> extra, std::uint64_t number);
  Migration finish(const Stream& stream, Particles& particles, std::span<DeviceBuffer<float>* const> extra,
                   std::uint64_t number);

 private:
  Sites& sites_;
  std::vector<int> partners_;  // sites, in the order of the ring
  Leavers leavers_;
  Migration counts_;
};

}  // namespace maki::sites
