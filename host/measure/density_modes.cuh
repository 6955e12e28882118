// The modes of all ranks' masses on the pencils of a mesh, for spectra over ranks.
#pragma once

#include "host/comm/communicator.hpp"
#include "host/fft/pencil_fft.hpp"
#include "kernels/measure/power_parts.cuh"
#include "kernels/mesh/mesh.hpp"

namespace maki {

// Both interlaced meshes as one spectrum, the cloud not deconvolved: mass in a mode, not normalised. The modes have the
// same bits for any number of ranks.
class DensityModes {
 public:
  // Collective. Throws Error, the same on all ranks, where the mesh or the folding make no sense or there is no mass.
  DensityModes(const Communicator& communicator, const Stream& stream, const MeshParticles& mine,
               const MeasurePowerOptions& options);

  const MassMoments& moments() const { return moments_; }  // of all ranks
  PencilFft& fft() { return fft_; }
  // The modes of this rank's pencils, lines [ky][kz][kx].
  PowerModes modes();
  DeviceBuffer<float>& values() { return mesh_; }

 private:
  MassMoments moments_;
  PencilFft fft_;
  DeviceBuffer<float> mesh_{"power.mesh"};
};

// sum_power() over all ranks. Collective.
PowerSums sum_power(const Communicator& communicator, const Stream& stream, const PowerModes& modes,
                    const Complex* other, const MeasurePowerOptions& options);

}  // namespace maki
