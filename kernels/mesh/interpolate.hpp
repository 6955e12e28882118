// Values of a mesh at the particles, with the cloud of the assignment.
#pragma once

#include "kernels/mesh/mesh.hpp"

namespace maki {

struct MeshView {
  const float* values;  // m x m rows of 2 (m/2 + 1) floats
  int cells;
  bool shifted;         // particles stand half a cell further along each axis than where they are
};

// out[i] = factor * mesh at particle i, or that added to out[i]; i in [0, n).
void interpolate(const Stream& stream, Assignment cloud, const MeshView& mesh, const SourceParticle* particles,
                 std::size_t n, float factor, bool add, float* out);

// The derivatives of the interpolated function, gradient_factor d/dx in 1 / side, and where `value` is not null the
// function itself times `factor`; written, or added to what is there.
struct GradientOutput {
  VectorView gradient;
  float gradient_factor;
  float* value;
  float factor;
  bool add;
};
void interpolate_gradient(const Stream& stream, Assignment cloud, const MeshView& mesh, const SourceParticle* particles,
                          std::size_t n, const GradientOutput& out);

}  // namespace maki
