// Mass assignment. MassCounter: integer counts of one rank's particles in a box of the mesh's cells. MassAssigner: the
// mass in each cell of a mesh that one rank holds whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/device/fft.hpp"
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

// A box of cells in an array of counts, and its place in a mesh. Both are contiguous along the last axis.
struct CountBox {
  std::array<std::size_t, 3> first, count;  // cells of the array of counts
  std::array<std::size_t, 2> count_steps;   // elements to the next one along its first two axes
  std::size_t mesh_first;                   // element of the mesh
  std::array<std::size_t, 2> mesh_steps;
};
// mesh = (unit.rounded(counts) - unit.mean) quantum. `done` (host memory, or null): 1 for each row [x][y] of the counts
// to skip; not read on a GPU, where no row is done (makes_masses()). Returns whether the counts of converted rows are
// zero afterwards; else they are undefined.
bool counts_to_masses(const Stream& stream, const CountBox& box, const MassUnit& unit, std::uint64_t* counts,
                      float* mesh, const std::uint8_t* done = nullptr);

// For estimates: device bytes of a MassCounter, for a box with `plane` cells in a plane.
double counter_bytes(double plane, double particles);

// Counts particles' masses in the cells of a box, and owns the work space.
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
  // counts of the parts of a set add up to those of the set, whatever the boxes. `zero`: the caller's `counts` are all
  // zero.
  void count(const Stream& stream, bool shifted, std::uint64_t* counts, bool zero = false);

  // Rows (along the last axis) to which no other rank adds mass, and the boxes that hold all their cells.
  struct OwnRows {
    const std::uint8_t* own;  // by row [x][y]: 1, in host memory
    const std::vector<CountBox>& boxes;
    const MassUnit& unit;
    float* mesh;
  };
  // As the first count(). Where makes_masses() is true, own rows become masses at once, and their `counts` are not
  // written.
  void count(const Stream& stream, bool shifted, std::uint64_t* counts, const OwnRows& rows);
  // Whether count() makes masses of own rows, while their counts are in the cache: on the CPU. On the GPU it leaves all
  // rows to counts_to_masses().
  static bool makes_masses();

  // By plane x of the whole mesh: 0 only where no cloud of the particles taken reaches, on either mesh; 1 may be
  // conservative.
  std::vector<std::uint8_t> planes() const;

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

// For estimates: device bytes of a MassAssigner for a mesh of `cells` a side, with the work space that it borrows.
double assigner_bytes(int cells, double particles);

// A MassCounter of the whole mesh, all of whose rows become masses.
class MassAssigner {
 public:
  // `fft`: the transform of the mesh, which gives its layout, and in whose work space the GPU keeps its counts (8 bytes
  // a cell less). It must outlive this object, and both are used on one stream. The mesh has at least 8 cells a side.
  MassAssigner(Assignment cloud, RealFft3d& fft);

  // Overwrites `mesh` with the mass in each cell less the mean over cells; padding is left alone. `shifted`, where not
  // null, gets the same with all particles moved by +1/2 cell along each axis, for interlacing. Counts are exact
  // integers: the same bits for any order of particles, thread count, instruction set and backend. `unit` is
  // choose_mass_unit()'s for these particles, cells and cloud, at any earlier time: it depends only on their masses.
  void assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit, float* mesh,
              float* shifted);

 private:
  int cells_;
  MassCounter counter_;
  std::uint64_t* counts_;           // lent; null on the CPU
  std::vector<std::uint8_t> rows_;  // all of them are own
  std::vector<CountBox> box_;
};

}  // namespace maki
