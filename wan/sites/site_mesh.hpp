// Sums of mesh densities over all sites: each site sends the occupied planes of its part once to all others.
//
// Planes in x that the particles of no other site reach are sent as counts rounded to the unit of mass (MassUnit): sums
// are rounded to it before they become masses, so that the mesh has the same bits as on one site. Planes that several
// sites' particles reach are sent exactly, empty planes not at all (mesh_codec.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "host/fft/pencil_mesh.hpp"
#include "wan/sites/mesh_codec.hpp"
#include "wan/sites/sites.hpp"
#include "wan/sites/slabs.hpp"

namespace maki::sites {

// Values of gravity.mesh_mass_bits that do not change the accuracy of forces (bench/NOTES.md) and keep messages short;
// the second for run.preset = "precise".
inline constexpr int kSiteMassBits = 12, kPreciseSiteMassBits = 14;

class SiteMesh : public OutsideMasses {
 public:
  explicit SiteMesh(Sites& sites) : sites_(sites) {}
  // Sets the present slabs, and `stray`, the largest distance (sides) of particles beyond their slab. Before the first
  // call all planes are sent exactly.
  void set_slabs(const Slabs& slabs, double stray);

  // Throw SiteLost, and Error where sites have other units of mass or another mesh.
  void start_sum(const MeshBox& box, const MassUnit& unit, int meshes, const std::uint64_t* counts,
                 const std::uint64_t* shifted) override;
  void finish_sum(const MeshBox& box, const MassUnit& unit, int meshes, std::uint64_t* counts,
                  std::uint64_t* shifted) override;

  // Counters of this rank since the start. A plane is shared although rounded where a particle was further beyond its
  // slab than `stray`: a site took the plane for its own, and another site has masses in it. The mesh is then still the
  // same at all sites, but not bit for bit that of a run at one site.
  struct Counters {
    std::uint64_t bytes = 0;            // sent, without headers of the ring
    std::uint64_t shared_planes = 0;    // planes that were rounded although shared
    double encoding = 0, decoding = 0;  // seconds
  };
  const Counters& counters() const { return counters_; }
  // For tests: the number of cells in one piece of a message.
  void set_piece(std::size_t cells) { piece_ = std::max<std::size_t>(1, cells); }

 private:
  using Counts = std::array<const std::uint64_t*, 2>;
  using Sums = std::array<std::uint64_t*, 2>;
  // One plane of this rank in the current sum.
  struct PlaneUse {
    Plane own = Plane::kEmpty;  // as this rank sent it
    int sites = 0, last = 0;    // number of the sites with masses in it so far, and the last one of them
    bool rounded = false;       // one of these has rounded its counts
    bool to_round = false;      // this rank has, and its sums still hold exact counts
  };

  // Whether only this site has masses in a plane: the widest cloud reaches 2 cells, and rounding a little further.
  bool is_exclusive(int cells, int mesh, int plane) const;
  Plane kind(const MeshBox& box, const MassUnit& unit, int mesh, int x, const std::uint64_t* counts) const;
  std::vector<MeshChunk> chunks_of(const MeshBox& box, const MassUnit& unit, const Counts& counts) const;
  static void encode_chunk(const MeshBox& box, const Counts& counts, MeshChunk& chunk);
  void add(const MeshBox& box, const MassUnit& unit, const MeshPart& part, int site, const Sums& sums);
  void mark_user(const MeshBox& box, const MeshChunk& chunk, int site);
  void round_own(const MeshBox& box, const MassUnit& unit, const Sums& sums);

  Sites& sites_;
  double begin_ = 1, end_ = 0;  // the part of the box in which only this site has particles, in sides; none at first
  std::size_t piece_ = std::size_t{1} << 23;
  std::uint64_t sums_started_ = 0, sums_finished_ = 0;
  std::array<std::vector<PlaneUse>, 2> planes_;  // by mesh
  Counters counters_;
};

}  // namespace maki::sites
