// Masses in the mesh that are not of these ranks: those of other sites.
#pragma once

#include <cstdint>

#include "kernels/mesh/cell_box.hpp"
#include "kernels/mesh/mass_unit.hpp"

namespace maki {

class OutsideMasses {
 public:
  virtual ~OutsideMasses() = default;
  // The exact counts of these ranks' masses in `box`, this rank's part of the mesh (the parts of all ranks are the whole
  // mesh), lines [x][y][z] in host memory; `which` 0, or 1 for the mesh that is shifted for interlacing. They go on
  // their way; `counts` may be changed afterwards. Collective over the ranks, both meshes in turn.
  virtual void give(const CellBox& box, int which, const MassUnit& unit, const std::uint64_t* counts) = 0;
  // `counts`, those that were given, become the sum over all sites. Waits. Collective, both meshes in turn.
  virtual void take(const CellBox& box, int which, const MassUnit& unit, std::uint64_t* counts) = 0;
};

}  // namespace maki
