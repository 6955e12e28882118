// Particles to the sites that own them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/domain/migrate.hpp"
#include "host/domain/packing.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {

// Particles of this rank outside of the site's slab leave for its neighbours, and others come in, to any rank of the
// site: half a round trip is waited for, with one message to each neighbour, empty or not. begin() sends and changes
// nothing, finish() receives, takes out those who have left and appends the others: by site in the order of the ring,
// then by their rank, then in their order there. Between the two, particles may be read. `extra` as in migrate().
// Throws Error, on all ranks, where a particle belongs to a site that is no neighbour: it has moved further than a slab
// is thick. With Reach::kAll nothing is too far, and every other site has a message: slabs of isolated sets may be
// thin. The counts are of this rank; messages are one for each neighbour.
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
