// The particles of all sites at one of them, for what is measured of the whole box at an output: power spectra and
// pictures. A particle takes 12 or 16 bytes on its way; the mesh of a spectrum, usually 8 cells a particle and two
// interlaced meshes of 64-bit counts, would take 128.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/particles/types.hpp"
#include "wan/sites/sites.hpp"

namespace maki::sites {

class GatheredSet {
 public:
  // All sites call it, each rank with its n particles (may be none): they go to the site with most ranks, the first of
  // several (Phase::kOutput), whose ranks share them out by x. A site has a bounded number of them on their way.
  GatheredSet(Sites& sites, const Stream& stream, const SourceParticle* particles, std::size_t n);

  int place() const { return place_; }                                  // of the site that has them
  bool here() const { return here_; }                                   // on all ranks of that site
  std::uint64_t count() const { return count_; }                        // of all sites
  const DeviceBuffer<SourceParticle>& share() const { return share_; }  // this rank's; empty at other sites

 private:
  int place_ = 0;
  bool here_ = false;
  std::uint64_t count_ = 0;
  DeviceBuffer<SourceParticle> share_{"sites.gathered"};
};

// What rank 0 of the site `from` has, on all ranks of all sites. All sites call it.
Message from_site(Sites& sites, int from, Message mine);

}  // namespace maki::sites
