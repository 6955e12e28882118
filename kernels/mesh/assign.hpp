// Mass assignment: from particles to a mesh of mass per cell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/fft.hpp"
#include "kernels/mesh/count_masses.hpp"
#include "kernels/mesh/mass_unit.hpp"

namespace maki {

// For estimates: device bytes of a MassAssigner, and of its lender's use for it, for a mesh of `cells` a side.
double assigner_bytes(int cells, double particles);

// A MassCounter of the whole mesh, all of whose rows become masses.
class MassAssigner {
 public:
  // `lender`, where not null: a transform of the same mesh, in whose work space the GPU keeps its counts (8 bytes a cell
  // less). The lender must outlive this object, and both are used on one stream. Throws Error unless `cells` is even and
  // at least 8.
  MassAssigner(int cells, Assignment cloud, RealFft3d* lender = nullptr);

  // Overwrites `mesh` with the mass in each cell less the mean over cells: m x m rows of m + 2 floats in the layout of
  // RealFft3d (the padding, the last two of a row, is left alone). `shifted`, where not null, gets the same with all
  // particles moved by +1/2 cell along each axis, for interlacing. Counts are exact integers: the same bits for any order
  // of particles, thread count, instruction set and backend. `unit` is choose_mass_unit()'s for these particles, cells
  // and cloud, at any earlier time: it depends only on their masses.
  void assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit, float* mesh,
              float* shifted);

  // The same, choosing the unit first, which waits for the device. Throws Error as choose_mass_unit() does.
  MassUnit assign(const Stream& stream, const SourceParticle* particles, std::size_t n, float* mesh, float* shifted) {
    const MassUnit unit = choose_mass_unit(stream, cloud_, cells_, particles, n);
    assign(stream, particles, n, unit, mesh, shifted);
    return unit;
  }

  std::size_t bytes() const;  // without borrowed work space

 private:
  int cells_;
  Assignment cloud_;
  MassCounter counter_;
  DeviceBuffer<std::uint64_t> own_counts_{"mesh.counts"};  // none where they are lent, or not needed
  std::uint64_t* counts_ = nullptr;
  std::vector<std::uint8_t> rows_;  // all of them are own
  std::vector<CountBox> box_;
};

}  // namespace maki
