// Interpolation of a mesh at the particles, with the cloud of the assignment.
#pragma once

#include "kernels/mesh/mesh.hpp"

namespace maki {

struct MeshView {
  // A box of the mesh's cells that contains the clouds of all particles; no padding.
  MeshView(const float* mesh, const MeshBox& cells, bool half_cell)
      : values(mesh), box(cells), row(static_cast<std::size_t>(cells.extent[2])),
        lines(static_cast<std::size_t>(cells.extent[1])), shifted(half_cell) {}

  const float* values;  // extent[0] x extent[1] rows
  MeshBox box;
  std::size_t row;    // floats from one row to the next
  std::size_t lines;  // rows from one plane to the next; on a GPU extent[1]
  bool shifted;       // the shifted mesh of interlacing: particles at +1/2 cell along each axis
};

// Arrays by particle: the gradient of the interpolated function, gradient_factor d/dx in 1 / side, and the function
// itself times `factor`. Either may be null. They are written, or with `add` added to.
struct InterpolationOutput {
  VectorView gradient;
  float gradient_factor;
  float* value;
  float factor;
  bool add;
};
void interpolate(const Stream& stream, Assignment cloud, const MeshView& mesh, const SourceParticle* particles,
                 std::size_t n, const InterpolationOutput& out);

}  // namespace maki
