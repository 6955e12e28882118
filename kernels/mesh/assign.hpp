// Mass assignment: particles to a mesh of mass a cell.
#pragma once

#include <memory>

#include "kernels/device/fft.hpp"
#include "kernels/mesh/mass_unit.hpp"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// For estimates: bytes on the device of a MassAssigner for a mesh of so many cells a side, and its lender's for it.
double assigner_bytes(int cells, double particles);

// Holds the integer work space for one mesh size and cloud.
class MassAssigner {
 public:
  // With a `lender`, a transform of the same mesh, the GPU's integer mesh lies in the lender's work space (8 bytes a
  // cell less): the lender has to outlive this object, and both are used on one stream. Throws Error unless `cells` is
  // even and at least 8.
  MassAssigner(int cells, Assignment assignment, RealFft3d* lender = nullptr);
  ~MassAssigner();

  // Overwrites `mesh` with the mass in each cell less the mean over cells, m x m rows of 2 (m/2 + 1) floats as
  // RealFft3d has them (the padding is set to 0). `shifted`, where not null, gets the same with all particles moved by
  // +1/2 cell along each axis, for interlacing. The counts behind it are exact integers: equal bit for bit for any
  // order of particles, thread count, instruction set and backend. `unit` is choose_mass_unit()'s for these particles,
  // cells and cloud, at any earlier time: it depends on their masses alone.
  void assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit, float* mesh,
              float* shifted);

  // The same with a unit chosen first, which waits for the device. Throws Error as choose_mass_unit() does.
  MassUnit assign(const Stream& stream, const SourceParticle* particles, std::size_t n, float* mesh, float* shifted) {
    const MassUnit unit = choose_mass_unit(stream, assignment_, cells_, particles, n);
    assign(stream, particles, n, unit, mesh, shifted);
    return unit;
  }

  std::size_t bytes() const;  // without borrowed work space

 private:
  struct Work;
  int cells_;
  Assignment assignment_;
  std::unique_ptr<Work> work_;
};

}  // namespace maki
