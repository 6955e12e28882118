// Mesh densities around the ring: each site sends its slab's occupied part once, all end with the whole mesh.
#pragma once

#include <memory>

#include "host/fft/outside_masses.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {

class SiteMesh : public OutsideMasses {
 public:
  explicit SiteMesh(Sites& sites);
  ~SiteMesh() override;
  // The slabs as they are now, and how far (sides) particles may be beyond them.
  void set_slabs(const Slabs& slabs, double stray);
  void give(const CellBox& box, int which, const MassUnit& unit, const std::uint64_t* counts) override;
  void take(const CellBox& box, int which, const MassUnit& unit, std::uint64_t* counts) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace maki::sites
