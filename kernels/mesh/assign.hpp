// Mass assignment: particles to a mesh of mass a cell.
#pragma once

#include <memory>

#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// Holds the integer work space for one mesh size and cloud.
class MassAssigner {
 public:
  MassAssigner(int cells, Assignment assignment);  // throws Error unless `cells` is even and at least 8
  ~MassAssigner();

  // Overwrites `mesh` with the mass in each cell less the mean over cells, m x m rows of 2 (m/2 + 1) floats as
  // RealFft3d has them (the padding is set to 0). `shifted`, where not null, gets the same with all particles moved by
  // +1/2 cell along each axis, for interlacing. The counts behind it are exact integers: equal bit for bit for any
  // order of particles, thread count, instruction set and backend. Throws Error as choose_mass_unit() does.
  MassUnit assign(const Stream& stream, const SourceParticle* particles, std::size_t n, float* mesh, float* shifted);

  std::size_t bytes() const;

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace maki
