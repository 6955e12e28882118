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
  // mesh), lines [x][y][z] in host memory; `shifted` those of the mesh that is shifted for interlacing, or null where
  // there is none. They go on their way, and may be changed afterwards. Collective over the ranks.
  virtual void give(const CellBox& box, const MassUnit& unit, const std::uint64_t* counts,
                    const std::uint64_t* shifted) = 0;
  // Those that were given become sums over all sites. Waits. Collective.
  virtual void take(const CellBox& box, const MassUnit& unit, std::uint64_t* counts, std::uint64_t* shifted) = 0;
};

}  // namespace maki
