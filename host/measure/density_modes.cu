#include "host/measure/density_modes.cuh"

#include <array>
#include <string>

#include "host/fft/particle_brick.hpp"
#include "kernels/error.hpp"

namespace maki {
namespace {

int checked_mesh(const MeasurePowerOptions& options) {
  check_power_options(options);
  const int cells = options.cells;
  if (cells < 8 || cells % 2)
    throw Error("a mesh of " + std::to_string(cells) + " cells a side", "it has to be even and at least 8",
                "choose an even number from 8 up");
  return cells;
}

MassMoments moments_of_all(const Communicator& communicator, const Stream& stream, const MeshParticles& mine) {
  const MassMoments here = mass_moments(stream, mine.particles, mine.n);
  std::array<double, 3> all = {here.mass, here.square, here.cube};
  communicator.sum(all);
  const MassMoments moments{all[0], all[1], all[2]};
  check_mass(moments);
  return moments;
}

Complex* complex_of(float* values) { return reinterpret_cast<Complex*>(values); }

}  // namespace

DensityModes::DensityModes(const Communicator& communicator, const Stream& stream, const MeshParticles& mine,
                           const MeasurePowerOptions& options)
    : moments_((checked_mesh(options), moments_of_all(communicator, stream, mine))), fft_(communicator, options.cells) {
  DeviceBuffer<SourceParticle> folded("power.folded");
  const SourceParticle* particles = fold_particles(stream, mine.particles, mine.n, options.folding, folded);
  const MassUnit unit = choose_mass_unit(communicator, stream, Assignment::kPcs, options.cells, particles, mine.n);
  mesh_.resize(fft_.size());
  DeviceBuffer<float> shifted("power.shifted", fft_.size());
  ParticleBrick(communicator, fft_.layout(), fft_.real_row(), Assignment::kPcs, true, 0)
      .assign(stream, particles, mine.n, unit, mesh_.data(), shifted.data());
  fft_.forward(stream, mesh_.data());
  fft_.forward(stream, shifted.data());
  combine_meshes(stream, modes(), complex_of(shifted.data()), options.cells);
}

PowerModes DensityModes::modes() {
  const PencilBox held = fft_.modes();
  return {complex_of(mesh_.data()),
          {held.along[1].first, held.along[2].first, held.along[1].count(), held.along[2].count()},
          fft_.layout().cells(),
          static_cast<int>(fft_.mode_row() / 2),
          PowerModes::Half::kY};
}

PowerSums sum_power(const Communicator& communicator, const Stream& stream, const PowerModes& modes,
                    const Complex* other, const MeasurePowerOptions& options) {
  PowerSums sums = sum_power(stream, modes, other, options);
  communicator.sum(sums.waves);
  communicator.sum(sums.power);
  communicator.sum(sums.modes);
  return sums;
}

}  // namespace maki
