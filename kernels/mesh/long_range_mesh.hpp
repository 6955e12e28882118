// What gravity asks of a mesh, whether it lies on one rank (ParticleMesh) or over many.
#pragma once

#include <cstddef>

#include "kernels/device/stream.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/particles/types.hpp"
#include "kernels/particles/vector_array.hpp"

namespace maki {

class LongRangeMesh {
 public:
  virtual ~LongRangeMesh() = default;

  // choose_mass_unit() for these particles; over many ranks for all ranks' (collective).
  virtual MassUnit mass_unit(const Stream& stream, const SourceParticle* particles, std::size_t n) const = 0;

  // The first half of long_range() for the same arguments, which then follows and finds it done: where the masses of
  // other sites belong to the mesh as well, this sends them those of these particles (PencilMesh::set_outside), and
  // what is done until long_range() hides their way. Elsewhere it does nothing. Collective over ranks.
  virtual void begin(const Stream&, const SourceParticle*, std::size_t, const MassUnit&) {}

  // Overwrites acceleration (mass/side^2) and, where not null, potential (mass/side) of this rank's n particles (n may
  // be 0). Over many ranks collective, and potential is asked for by all that have particles or by none.
  virtual void long_range(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                          VectorView acceleration, float* potential) = 0;
};

}  // namespace maki
