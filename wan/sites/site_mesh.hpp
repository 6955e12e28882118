// Mesh densities around the ring: each site sends its slab's occupied part once, all end with the whole mesh.
//
// Planes in x that no other site's particles reach go as rounded counts, in units of what rounding leaves (MassUnit):
// the sum that becomes a mass is rounded in any case, so that a mesh over sites has the bits of one site's. Planes that
// others reach go exact, and empty ones not at all (mesh_codec.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "host/fft/outside_masses.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {

// For gravity.mesh_mass_bits: forces lose nothing by it (bench/NOTES.md), and the mesh takes few bytes. The second where
// forces are as exact as with run.preset = "precise".
inline constexpr int kSiteMassBits = 12, kPreciseSiteMassBits = 14;

class SiteMesh : public OutsideMasses {
 public:
  explicit SiteMesh(Sites& sites);
  ~SiteMesh() override;
  // The slabs as they are now, and how far (sides) particles may be beyond them. Until it is called all planes are
  // exact.
  void set_slabs(const Slabs& slabs, double stray);

  // Throw SiteLost, and Error where sites have other units of mass or another mesh.
  void give(const CellBox& box, const MassUnit& unit, const std::uint64_t* counts,
            const std::uint64_t* shifted) override;
  void take(const CellBox& box, const MassUnit& unit, std::uint64_t* counts, std::uint64_t* shifted) override;

  // Since the beginning, of this rank. A plane that a site has rounded as its own and another one has masses in (a
  // particle was further out than set_slabs() said): the sum is then of what was sent, the same at all sites, but not
  // the bits of one site's mesh.
  struct Counters {
    std::uint64_t bytes = 0;            // sent, before the ring's own
    std::uint64_t shared_planes = 0;    // rounded all the same
    double encoding = 0, decoding = 0;  // seconds
  };
  const Counters& counters() const;
  // For tests: cells of a piece, after which the next one is sent.
  void set_piece(std::size_t cells);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace maki::sites
