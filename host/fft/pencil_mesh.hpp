// The particle mesh over many ranks: what ParticleMesh is on one (kernels/mesh/mesh.hpp).
//
// Masses go from bricks around each rank's particles to pencils, are transformed there, and forces come back to the
// bricks (particle_brick.hpp, pencil_fft.hpp).
#pragma once

#include <memory>

#include "host/comm/communicator.hpp"
#include "host/fft/outside_masses.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// The mesh of given particles is the same bits for any number of ranks and any division of the particles among them,
// and so are the forces: exact sums before the transform, and the same lines in it (line_fft.hpp).
class PencilMesh : public LongRangeMesh {
 public:
  // Throws Error as check_mesh_options() does. Collective, as are mass_unit() and long_range().
  PencilMesh(const Communicator& communicator, const MeshOptions& options, const ForceLaw& law);
  ~PencilMesh() override;

  // The masses of other sites, which are added to these ranks' before the transform: `outside` outlives this or is taken
  // away again (null). begin() then gives, and long_range() takes, and both where begin() was not called; the unit of
  // mass is that of all sites' particles, which mass_unit() does not know.
  void set_outside(OutsideMasses* outside);
  void begin(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) override;

  MassUnit mass_unit(const Stream& stream, const SourceParticle* particles, std::size_t n) const override;
  void long_range(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                  VectorView acceleration, float* potential) override;

  // As those of ParticleMesh, of this rank.
  void measure_phases();
  MeshPhases phases() const;
  std::size_t bytes() const;
  const MeshOptions& options() const;

  // Sent to other ranks so far: masses and forces between bricks and pencils, and by transforms.
  struct Sent {
    std::uint64_t bricks = 0, transforms = 0;
  };
  Sent bytes_sent() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace maki
