// The pull of a particle's own cloud on the mesh.
#pragma once

#include <optional>

#include "kernels/device/buffer.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// A mesh does not know a particle's position within its cell, and so a particle accelerates itself: with the analytic
// gradient by some 7e-3 G m / r_cut^2, odd and periodic in its position in the cell. Between particles of one mass the
// errors of all pairs, the self-force among them, nearly cancel where matter is smooth. The self-force of a particle
// much heavier than its surroundings does not cancel: it is subtracted.
//
// It is computed as the mesh computes it, with the particle's own integer weights, from the influence function's
// transform to the few cells that two clouds share (Hockney & Eastwood 1988, section 5-4-3, on self-forces).
class SelfForce {
 public:
  SelfForce(const MeshOptions& options, const ForceLaw& law) : options_(options), law_(law) {}

  // Subtracts it from the long-range acceleration of particles heavier than kHeavy mean ones or, in sparse sets, than
  // the matter in kSparse mean cells. `unit` as in ParticleMesh::long_range().
  void subtract(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
                VectorView acceleration);

 private:
  static constexpr double kHeavy = 4, kSparse = 128;

  MeshOptions options_;
  ForceLaw law_;
  std::optional<DeviceBuffer<double>> tables_;  // made once a heavy particle is possible
};

}  // namespace maki
