// Mesh densities around the ring: each site sends its slab's occupied part once, all end with the whole mesh.
//
// Planes in x that no other site's particles reach are sent as rounded counts, in units of the rounding (MassUnit): the
// sum that becomes a mass is rounded in any case, so that the mesh has the same bits as on one site. Planes that other
// sites' particles reach are sent exactly, empty ones not at all (mesh_codec.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "host/fft/pencil_mesh.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {

// Values of gravity.mesh_mass_bits for which forces lose nothing (bench/NOTES.md) and the mesh takes few bytes; the
// second for forces as exact as with run.preset = "precise".
inline constexpr int kSiteMassBits = 12, kPreciseSiteMassBits = 14;

class SiteMesh : public OutsideMasses {
 public:
  explicit SiteMesh(Sites& sites);
  ~SiteMesh() override;
  // Sets the present slabs, and `stray`, the distance (sides) that particles may be beyond them. Without a call all
  // planes are sent exactly.
  void set_slabs(const Slabs& slabs, double stray);

  // Throw SiteLost, and Error where sites have other units of mass or another mesh.
  void give(const MeshBox& box, const MassUnit& unit, const std::uint64_t* counts,
            const std::uint64_t* shifted) override;
  void take(const MeshBox& box, const MassUnit& unit, std::uint64_t* counts, std::uint64_t* shifted) override;

  // Counters of this rank since the beginning. Shared planes: one site has rounded the plane as its own, another one
  // has masses in it, since a particle was further out than `stray`. The mesh is then still the same at all sites, but
  // not bit for bit that of a run at one site.
  struct Counters {
    std::uint64_t bytes = 0;            // sent, without headers of the ring
    std::uint64_t shared_planes = 0;    // rounded although shared
    double encoding = 0, decoding = 0;  // seconds
  };
  const Counters& counters() const;
  // For tests: number of cells in one piece of a message.
  void set_piece(std::size_t cells);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace maki::sites
