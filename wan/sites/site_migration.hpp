// Particles to the sites that own them.
#pragma once

#include <cstdint>
#include <span>

#include "host/domain/migrate.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {

// Particles of this rank outside of the site's slab leave for its neighbours, and others come in, to any rank of the
// site: half a round trip is waited for, with one message to each neighbour, empty or not. begin() sends, finish()
// receives and appends, in an order that depends on nothing but the particles. `extra` as in migrate(). Throws Error
// where a particle belongs to a site that is no neighbour: it has moved further than a slab is thick.
class SiteMigration {
 public:
  explicit SiteMigration(Sites& sites) : sites_(sites) {}
  void begin(const Stream& stream, const Slabs& slabs, Particles& particles,
             std::span<DeviceBuffer<float>* const> extra, std::uint64_t number);
  Migration finish(const Stream& stream, Particles& particles, std::span<DeviceBuffer<float>* const> extra,
                   std::uint64_t number);

 private:
  Sites& sites_;
  Migration counts_;
};

}  // namespace maki::sites
