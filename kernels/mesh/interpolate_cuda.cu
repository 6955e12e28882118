#include "kernels/mesh/interpolate_cuda.cuh"

namespace maki {

void interpolate(const Stream& stream, Assignment cloud, const MeshView& mesh, const SourceParticle* particles,
                 std::size_t n, const ValueOutput& out) {
  cuda::interpolate(stream, cloud, mesh, particles, n, out);
}

void interpolate_gradient(const Stream& stream, Assignment cloud, const MeshView& mesh, const SourceParticle* particles,
                          std::size_t n, const GradientOutput& out) {
  cuda::interpolate_gradient(stream, cloud, mesh, particles, n, out);
}

}  // namespace maki
