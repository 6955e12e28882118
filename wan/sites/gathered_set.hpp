// The particles of all sites gathered at one site, for what is measured of the whole box: positions and masses for
// power spectra and pictures, velocities and IDs too for groups. A particle takes 12 or 16 bytes in messages, for
// groups 36. The mesh of a spectrum would take 128: usually 8 cells a particle, two interlaced meshes, 64-bit counts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/particles/particles.hpp"
#include "wan/sites/sites.hpp"

namespace maki::sites {

class GatheredSet {
 public:
  // Collective over all sites; each rank gives its n particles (maybe none). They are sent (Phase::kOutput) to the site
  // with most ranks, the first if there are several, whose ranks divide them by x. Each site has a bounded number of
  // particles in flight.
  GatheredSet(Sites& sites, const Stream& stream, const SourceParticle* particles, std::size_t n);

  int place() const { return place_; }                                  // place in the ring of the site that has them
  bool here() const { return here_; }                                   // this is that site; true on all its ranks
  std::uint64_t count() const { return count_; }                        // particles of all sites
  const DeviceBuffer<SourceParticle>& share() const { return share_; }  // this rank's; empty at other sites

 private:
  int place_ = 0;
  bool here_ = false;
  std::uint64_t count_ = 0;
  DeviceBuffer<SourceParticle> share_{"sites.gathered"};
};

// The same with velocities and IDs; remainders of coordinates are 0. The particles are not divided: each rank of the site
// that has them holds its own ones and those that ranks of other sites have sent to it.
class GatheredParticles {
 public:
  GatheredParticles(Sites& sites, const Stream& stream, const Particles& particles);

  int place() const { return place_; }
  bool here() const { return here_; }
  Particles& particles() { return particles_; }

 private:
  int place_ = 0;
  bool here_ = false;
  Particles particles_;
};

// Broadcasts `mine` of rank 0 of the site `from` to all ranks of all sites. Collective over all sites.
Message from_site(Sites& sites, int from, Message mine);

}  // namespace maki::sites
