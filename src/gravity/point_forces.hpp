// Forces of particles at points that are none of them, by the tree, or by tree and mesh.
#pragma once

#include "kernels/particles/particles.hpp"
#include "src/gravity/gravity.hpp"

namespace maki {

// G = 1, lengths in sides (kernels/particles/types.hpp); by point. The total is the sum of both ranges, and its potential has
// the mean 0 over a periodic box; isolated sets have no long range.
struct PointForces {
  VectorArray short_range{"points.short"}, long_range{"points.long"};
  DeviceBuffer<float> short_potential{"points.short_potential"}, long_potential{"points.long_potential"};
};

// As Gravity has it with new lists, of cells that are opened by angle: with options.open_by_error by one that makes forces as
// good. Where a particle stands at a point its own term is left out, but for its little pull on itself by the mesh. Both sets
// are sorted; the points' masses and momenta are not read. One rank. Throws Error as Gravity does.
PointForces forces_at_points(const Stream& stream, const GravityOptions& options, Particles& sources,
                             Particles& points);

}  // namespace maki
