// Gathers the particles of all sites at one site, for measurements of the whole box: positions and masses for power
// spectra and pictures, also velocities and IDs for groups. A particle takes 12 bytes in messages where all masses are
// equal, else 16; for groups 36. (The counts of a spectrum's mesh would take 128: 8 cells a particle, two interlaced
// meshes, 64 bits.) In a ring of one site nothing is sent: each rank keeps its own particles.
#pragma once

#include "kernels/device/buffer.hpp"
#include "kernels/particles/particles.hpp"
#include "wan/sites/sites.hpp"

namespace maki::sites {

class GatheredSet {
 public:
  // Collective over all sites; each rank gives its own particles (maybe none), which have to outlive this. They are
  // sent (Phase::kOutput) to the site with most ranks, the first if there are several, whose ranks divide them by x.
  // Each site has a bounded number of particles in flight.
  GatheredSet(Sites& sites, const Stream& stream, const DeviceBuffer<SourceParticle>& own);

  int place() const { return place_; }  // place of the gathering site in the ring
  bool here() const { return here_; }   // whether this is the gathering site; the same on all its ranks
  // This rank's particles; none at other sites.
  const DeviceBuffer<SourceParticle>& share() const { return own_ ? *own_ : share_; }

 private:
  int place_ = 0;
  bool here_ = true;
  const DeviceBuffer<SourceParticle>* own_ = nullptr;  // of a site alone
  DeviceBuffer<SourceParticle> share_{"sites.gathered"};
};

// As GatheredSet, but with velocities and IDs; remainders of coordinates are 0. The particles are not redistributed:
// each rank of the gathering site holds its own ones and those sent to it by ranks of other sites.
class GatheredParticles {
 public:
  GatheredParticles(Sites& sites, const Stream& stream, const Particles& particles);
  // Takes a set that is no longer needed: at a single site it becomes the gathered set.
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
// As from_site(), but to rank 0 of each site alone; other ranks get an empty message.
Message from_site_to_first(Sites& sites, int from, Message mine);

}  // namespace maki::sites
