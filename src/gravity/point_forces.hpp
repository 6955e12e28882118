// Forces of particles at arbitrary points, by the tree, or by tree and mesh.
#pragma once

#include "kernels/particles/particles.hpp"
#include "src/gravity/gravity.hpp"

namespace maki {

// G = 1, lengths in sides (kernels/particles/types.hpp); by point. The total is the sum of both ranges, and its
// potential has the mean 0 over a periodic box; isolated sets have no long range.
struct PointForces {
  VectorArray short_range{"points.short"}, long_range{"points.long"};
  DeviceBuffer<float> short_potential{"points.short_potential"}, long_potential{"points.long_potential"};
};

// Forces as Gravity's with new lists and cells opened by angle (with options.open_by_error by an angle of the same
// accuracy). For a particle at a point its own term is left out, except its small self-force by the mesh. Sorts both
// sets; does not read the points' masses and momenta. One rank. Throws Error as Gravity does.
PointForces forces_at_points(const Stream& stream, const GravityOptions& options, Particles& sources,
                             Particles& points);

}  // namespace maki
