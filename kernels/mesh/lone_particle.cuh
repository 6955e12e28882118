// The long-range force on the one particle that outweighs all others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/mesh/mesh.hpp"
#include "kernels/mesh/modes.cuh"

namespace maki {

class MeshStorage;

// Transforms in single precision round a potential to some 1e-7 of its peak, which is at the heaviest particle. If that
// weighs MassUnit::kLone mean particles or more, the rounding can be per cents of the force of all others on it. So the
// modes are summed again at its place, in double: this gives the potential in the cells of its cloud, and from these
// its acceleration as in interpolate_gradient(). The pull of its own cloud stays included (SelfForce). The sums are the
// same bits for any number of ranks.
//
// With the analytic gradient alone: where each component is transformed back, the peak is not part of the mesh. A
// second particle as heavy would pull the first so hard that the rounding would not matter.
class LoneParticle {
 public:
  LoneParticle(const MeshOptions& options, const ForceLaw& law) : options_(options), law_(law) {}

  // Whether the set of this unit has such a particle. The functions below are for such sets, and collective over the
  // ranks of the storage.
  bool is_in(const MassUnit& unit) const { return options_.gradient == Gradient::kAnalytic && unit.lone_mass > 0; }
  // Its place, sent by the rank that has it.
  void find(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit,
            MeshStorage& storage);
  // The potential around it, from the modes of one output: 0, or 1 for the shifted mesh of interlacing.
  void sum_modes(const Stream& stream, const Complex* potential, int output, MeshStorage& storage);
  // Replaces its interpolated acceleration by the mean over `outputs` outputs.
  void replace(const Stream& stream, const SourceParticle* particles, std::size_t n, int outputs, MeshStorage& storage,
               VectorView acceleration);

  std::size_t bytes() const;

 private:
  MeshOptions options_;
  ForceLaw law_;
  float mass_ = 0;
  double quantum_ = 0;                                      // of the sums, which are integers; mass / side
  DeviceBuffer<double> waves_{"mesh.lone_waves"};           // cosines of 2 pi i / cells, then sines
  DeviceBuffer<std::uint64_t> place_{"mesh.lone_place"};    // x, y, z
  DeviceBuffer<double> lines_{"mesh.lone_lines"};           // [row of modes][cell along it], complex
  DeviceBuffer<std::uint64_t> planes_{"mesh.lone_planes"};  // [plane of modes][cell]
  DeviceBuffer<std::uint64_t> cells_{"mesh.lone_cells"};    // [output][cell], of the cloud's S^3, x slowest
};

}  // namespace maki
