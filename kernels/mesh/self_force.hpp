// The pull of a particle's own cloud on the mesh.
#pragma once

#include <optional>

#include "kernels/device/buffer.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// A mesh does not know where in its cell a particle stands, and so a particle accelerates itself: with the analytic
// gradient by some 7e-3 G m / r_cut^2, odd and periodic in its place in the cell. Between particles of one mass the
// errors of all pairs nearly cancel where matter is smooth, and the self-force is part of that sum. The self-force of a
// particle that is much heavier than those around it is not: it is taken off.
//
// The force is computed as the mesh does it, with the particle's own integer weights, from the influence function's
// transform to the few cells that two clouds share (Hockney & Eastwood 1988, section 5-4-3, on self-forces).
class SelfForce {
 public:
  SelfForce(const MeshOptions& options, const ForceLaw& law) : options_(options), law_(law) {}

  // Takes it off the long-range acceleration of those particles that are heavier than kHeavy mean ones or, in sparse
  // sets, than the matter in kSparse mean cells. `unit` as in ParticleMesh::long_range().
  void subtract(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                VectorView acceleration);

 private:
  static constexpr double kHeavy = 4, kSparse = 128;

  MeshOptions options_;
  ForceLaw law_;
  std::optional<DeviceBuffer<double>> tables_;  // made when a heavy particle may be there
};

}  // namespace maki
