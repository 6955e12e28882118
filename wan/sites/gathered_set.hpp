// The particles of all sites gathered at one site, for what is measured of the whole box: positions and masses for
// power spectra and pictures, velocities and IDs too for groups. A particle takes 12 or 16 bytes in messages, for
// groups 36. The mesh of a spectrum would take 128: usually 8 cells a particle, two interlaced meshes, 64-bit counts. In a
// ring of one site nothing is sent, and a set is the rank's own.
#pragma once

#include "kernels/device/buffer.hpp"
#include "kernels/particles/particles.hpp"
#include "wan/sites/sites.hpp"

namespace maki::sites {

class GatheredSet {
 public:
  // Collective over all sites; each rank gives its own particles (maybe none), which have to outlive this. They are sent
  // (Phase::kOutput) to the site with most ranks, the first if there are several, whose ranks divide them by x. Each site
  // has a bounded number of particles in flight.
  GatheredSet(Sites& sites, const Stream& stream, const DeviceBuffer<SourceParticle>& own);

  int place() const { return place_; }  // place in the ring of the site that has them
  bool here() const { return here_; }   // this is that site; true on all its ranks
  const DeviceBuffer<SourceParticle>& share() const {
    return own_ ? *own_ : share_;
  }  // this rank's; empty at other sites

 private:
  int place_ = 0;
  bool here_ = true;
  const DeviceBuffer<SourceParticle>* own_ = nullptr;  // of a site alone
  DeviceBuffer<SourceParticle> share_{"sites.gathered"};
};

// The same with velocities and IDs; remainders of coordinates are 0. The particles are not divided: each rank of the site
// that has them holds its own ones and those that ranks of other sites have sent to it.
class GatheredParticles {
 public:
  GatheredParticles(Sites& sites, const Stream& stream, const Particles& particles);
  // A set that nobody needs any more: what is gathered of a site alone is the set itself.
  GatheredParticles(Sites& sites, const Stream& stream, Particles&& particles);

  int place() const { return place_; }
  bool here() const { return here_; }
  Particles& particles() { return particles_; }

 private:
  void gather(Sites& sites, const Stream& stream, const Particles& particles);

  int place_ = 0;
  bool here_ = true;
  Particles particles_;
};

// Broadcasts `mine` of rank 0 of the site `from` to all ranks of all sites. Collective over all sites.
Message from_site(Sites& sites, int from, Message mine);

}  // namespace maki::sites
