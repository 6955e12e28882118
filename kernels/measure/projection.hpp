// Pictures: the mass in a slab, seen along an axis.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device/stream.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

// Lengths are fractions of the box side.
struct ProjectionOptions {
  int axis = 2;  // line of sight; the picture's axes are the two others in the order x, y, z
  int width = 1024, height = 1024;
  double front = 0, depth = 1;  // the slab [front, front + depth), around the box edge where it must
  // The visible part of the box: the whole box wraps around, a smaller window is cut at its edges.
  double left = 0, bottom = 0, extent = 1;
  bool count_particles = false;  // every particle has the mass 1 in the picture
};

// The steps of project_density() (host/measure/spectra.hpp): the unit of mass, the counts of each pixel, which add up
// exactly over ranks, and the density from the counts. Each particle is spread over 3 x 3 pixels (TSC). (The unit's
// bound is for the three weights of a mesh cell; with two weights a pixel may hold 4/3 of it, below 2^64.)
MassUnit projection_unit(const MassTotals& totals, bool count_particles);
std::vector<std::uint64_t> project_counts(const Stream& stream, const SourceParticle* particles, std::size_t n,
                                          const MassUnit& unit, const ProjectionOptions& options);
std::vector<double> density_of_counts(const std::vector<std::uint64_t>& counts, const MassUnit& unit,
                                      const ProjectionOptions& options);

}  // namespace maki
