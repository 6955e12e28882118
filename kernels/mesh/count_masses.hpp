// Integer mass assignment to a box of the mesh's cells: the contribution of one of many ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/device/stream.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/mesh.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

// The extent of the cloud of a particle in cell c: cells c - below, ..., c + above, on both meshes where they are
// interlaced.
struct CloudReach {
  int below, above;
};
CloudReach cloud_reach(Assignment cloud, bool interlaced);

// A box of cells in an array of counts, and its place among the lines of a mesh; both contiguous along the last axis.
struct CountBox {
  std::array<std::size_t, 3> first, count;  // cells of the array of counts
  std::array<std::size_t, 2> count_steps;   // elements to the next one along its first two axes
  std::size_t mesh_first;                   // element of the mesh
  std::array<std::size_t, 2> mesh_steps;
};
// mesh = (unit.rounded(counts) - unit.mean) quantum. `done` (host memory, or null), by row [x][y] of the counts: 1 for
// rows to skip. Returns whether the other rows' counts are zero afterwards; otherwise they are undefined.
bool counts_to_masses(const Stream& stream, const CountBox& box, const MassUnit& unit, std::uint64_t* counts,
                      float* mesh, const std::uint8_t* done = nullptr);

// For estimates: device bytes of a MassCounter, for a box with `plane` cells in a plane.
double counter_bytes(double plane, double particles);

// Holds its work space.
class MassCounter {
 public:
  explicit MassCounter(Assignment cloud);
  ~MassCounter();

  // Sets the particles to count, which must stay in place, and a box that contains all their clouds. With n = 0 the box
  // may be empty. The mesh has from 8 to 65535 cells a side.
  void take(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
            const MeshBox& box);
  // Overwrites `counts`, extent[0] x extent[1] x extent[2] with the last axis contiguous, with the quanta of mass
  // (MassUnit) in each cell of the box; `shifted`: with all particles moved by +1/2 cell along each axis. Exact: the
  // counts of the parts of a set add up to those of the set, whatever the boxes. `zero`: the counts are all zero
  // already.
  void count(const Stream& stream, bool shifted, std::uint64_t* counts, bool zero = false);

  // Rows (along the last axis) to which no other rank adds mass, and the boxes that hold all their cells.
  struct OwnRows {
    const std::uint8_t* own;  // by row [x][y]: 1, in host memory
    const std::vector<CountBox>& boxes;
    const MassUnit& unit;
    float* mesh;
  };
  // The same, but where makes_masses() own rows become masses at once, and nothing is written to their `counts`.
  void count(const Stream& stream, bool shifted, std::uint64_t* counts, const OwnRows& rows);
  // Whether count() makes masses of own rows, while their counts are in the cache: on the CPU. On the GPU it leaves all
  // rows to counts_to_masses().
  static bool makes_masses();

  // By plane x of the whole mesh: 0 only where no cloud of the particles taken reaches, on either mesh; 1 may be
  // conservative.
  std::vector<std::uint8_t> planes() const;

  std::size_t bytes() const;

 private:
  struct Work;
  Assignment cloud_;
  std::unique_ptr<Work> work_;
};

// The planes of a mesh that hold particles, by axis and cell along it: 1 where any particle is in that plane of a mesh
// of `cells`^3, else 0. Waits for the device.
std::array<std::vector<std::uint32_t>, 3> occupied_planes(const Stream& stream, const SourceParticle* particles,
                                                          std::size_t n, int cells);

// Whether all particles are in cells of the box. Waits for the device.
bool all_within(const Stream& stream, const SourceParticle* particles, std::size_t n, const MeshBox& box);

}  // namespace maki
