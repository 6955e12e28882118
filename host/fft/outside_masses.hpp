// The masses of other sites, which share the mesh with these ranks.
#pragma once

#include <cstdint>

#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/mesh_box.hpp"

namespace maki {

class OutsideMasses {
 public:
  virtual ~OutsideMasses() = default;
  // Starts to send the exact counts of these ranks' masses in `box`, this rank's part of the mesh (all parts make the
  // whole mesh), as lines [x][y][z] in host memory; `shifted`: the counts of the shifted mesh of interlacing, or null.
  // The arrays may be changed afterwards. Collective over the ranks.
  virtual void give(const MeshBox& box, const MassUnit& unit, const std::uint64_t* counts,
                    const std::uint64_t* shifted) = 0;
  // Replaces the counts that were given by their sums over all sites; waits for the other sites. Collective.
  virtual void take(const MeshBox& box, const MassUnit& unit, std::uint64_t* counts, std::uint64_t* shifted) = 0;
};

}  // namespace maki
