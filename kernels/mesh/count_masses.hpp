// Mass assignment in whole numbers to a box of the mesh's cells: what one of many ranks adds to the mesh.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/device/stream.hpp"
#include "kernels/mesh/cell_box.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

// How far the cloud of a particle in cell c reaches: the cells c - below, ..., c + above, on both meshes where they are
// interlaced.
struct CloudReach {
  int below, above;
};
CloudReach cloud_reach(Assignment cloud, bool interlaced);

// Keeps its work space.
class MassCounter {
 public:
  explicit MassCounter(Assignment cloud);
  ~MassCounter();

  // The particles to count, which stay where they are, and the box that none of their clouds reaches beyond. n may be
  // 0, and the box empty then. The mesh has from 8 to 65535 cells a side.
  void take(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
            const CellBox& box);
  // Overwrites `counts`, extent[0] x extent[1] x extent[2] with the last axis contiguous, with the quanta of mass
  // (MassUnit) in each cell of the box; where `shifted`, with all particles moved by +1/2 cell along each axis. Exact:
  // the counts of parts of a set add up to those of the set, whatever the boxes.
  void count(const Stream& stream, bool shifted, std::uint64_t* counts);

  std::size_t bytes() const;

 private:
  struct Work;
  Assignment cloud_;
  std::unique_ptr<Work> work_;
};

// A box of counts and the lines of a mesh that it becomes, both contiguous along the last axis.
struct CountBox {
  std::array<std::size_t, 3> count;
  std::array<std::size_t, 2> count_steps, mesh_steps;  // elements to the next one along the first two axes
};
// mesh = (counts - unit.mean) quantum. What the counts hold afterwards is of no meaning.
void counts_to_masses(const Stream& stream, const CountBox& box, const MassUnit& unit, std::uint64_t* counts,
                      float* mesh);

}  // namespace maki
