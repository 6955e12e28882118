// Sums of mesh densities over all sites: each site sends the occupied planes of its part once to all others.
//
// Planes in x that the particles of no other site reach are sent as counts rounded to the unit of mass (MassUnit): sums
// are rounded to it before they become masses, so that the mesh has the same bits as on one site. Planes that several
// sites' particles reach are sent exactly, empty planes not at all (mesh_codec.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "host/fft/pencil_mesh.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {

// Values of gravity.mesh_mass_bits that do not change the accuracy of forces (bench/NOTES.md) and keep messages short;
// the second for run.preset = "precise".
inline constexpr int kSiteMassBits = 12, kPreciseSiteMassBits = 14;

class SiteMesh : public OutsideMasses {
 public:
  explicit SiteMesh(Sites& sites);
  ~SiteMesh() override;
  // Sets the present slabs, and `stray`, the largest distance (sides) of particles beyond their slab. Before the first
  // call all planes are sent exactly.
  void set_slabs(const Slabs& slabs, double stray);

  // Throw SiteLost, and Error where sites have other units of mass or another mesh.
  void start_sum(const MeshBox& box, const MassUnit& unit, int meshes, const std::uint64_t* counts,
                 const std::uint64_t* shifted) override;
  void finish_sum(const MeshBox& box, const MassUnit& unit, int meshes, std::uint64_t* counts,
                  std::uint64_t* shifted) override;

  // Counters of this rank since the start. shared_planes: a site rounded a plane as its own although another site has
  // masses in it, since a particle was further out than `stray`. The mesh is then still the same at all sites, but no
  // longer bit for bit that of a run at one site.
  struct Counters {
    std::uint64_t bytes = 0;            // sent, without headers of the ring
    std::uint64_t shared_planes = 0;    // planes that were rounded although shared
    double encoding = 0, decoding = 0;  // seconds
  };
  const Counters& counters() const;
  // For tests: the number of cells in one piece of a message.
  void set_piece(std::size_t cells);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace maki::sites
