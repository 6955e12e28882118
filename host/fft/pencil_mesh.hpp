// The particle mesh over many ranks: the counterpart of ParticleMesh on one (kernels/mesh/mesh.hpp).
//
// Masses go from bricks around each rank's particles to pencils and are transformed there; forces come back to the
// bricks (particle_brick.hpp, pencil_fft.hpp).
#pragma once

#include <cstdint>

#include "host/comm/communicator.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// The masses of other sites that share the mesh with these ranks.
class OutsideMasses {
 public:
  virtual ~OutsideMasses() = default;
  // Starts to send the exact counts of these ranks' masses in `box`, this rank's part of the mesh (the ranks' parts
  // make the whole mesh), as lines [x][y][z] in host memory; `shifted`: the counts of the shifted mesh of interlacing,
  // where there are two `meshes`. The arrays may be changed afterwards; an empty part has none. Collective.
  virtual void start_sum(const MeshBox& box, const MassUnit& unit, int meshes, const std::uint64_t* counts,
                         const std::uint64_t* shifted) = 0;
  // Replaces the counts given by their sums over all sites; waits for the other sites. Collective.
  virtual void finish_sum(const MeshBox& box, const MassUnit& unit, int meshes, std::uint64_t* counts,
                          std::uint64_t* shifted) = 0;
};

// For estimates: device bytes of a rank with a PencilMesh, for `particles` on all `ranks` of all `sites`: pencils, as
// much again for their transposes, and a brick of counts or forces around a domain of `uneven` times an even share of
// the volume and the particles. Each of several sites has a whole mesh of its own.
double pencil_mesh_bytes(const MeshOptions& options, double particles, int ranks, int sites, double uneven);
// For estimates: bytes of page-locked host memory of all ranks of a site on GPUs, for counts of masses that go to other
// sites.
double shared_counts_bytes(const MeshOptions& options);

class PencilStorage;

// The mesh of given particles has the same bits for any number of ranks and any division of the particles among them,
// and so have the forces: sums before the transform are exact, and the transform's lines are the same (fft.hpp).
class PencilMesh : public ParticleMesh {
 public:
  // Throws Error as check_mesh_options() does. Collective.
  PencilMesh(const Communicator& communicator, const MeshOptions& options, const ForceLaw& law);

  // Sets the exchange of masses with other sites, whose masses are added to these ranks' before the transform;
  // `outside` outlives this object, or is reset to null. Its start_sum() is called in begin() and its finish_sum() in
  // long_range(), or both there if begin() was not called. The unit of mass is that of all sites' particles.
  void set_outside(OutsideMasses* outside);
  // The first half of long_range(), which must follow with the same arguments: starts to send the masses to other sites
  // (set_outside()), so that work until long_range() hides the transfer. Without others it does nothing. Collective.
  void begin(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit);

 private:
  PencilMesh(const MeshOptions& options, const ForceLaw& law, PencilStorage* storage);
  PencilStorage& storage_;  // owned by the base class
};

}  // namespace maki
