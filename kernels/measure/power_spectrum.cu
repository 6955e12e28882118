#include "kernels/measure/power_spectrum.hpp"

#include "kernels/device/fft.hpp"
#include "kernels/measure/power_parts.cuh"
#include "kernels/mesh/assign.hpp"

namespace maki {

MeasuredPower measure_power(const Stream& stream, const SourceParticle* particles, std::size_t n,
                            const MeasurePowerOptions& options) {
  check_power_options(options);
  const MassMoments moments = mass_moments(stream, particles, n);
  check_mass(moments);
  DeviceBuffer<SourceParticle> folded("power.folded");
  particles = fold_particles(stream, particles, n, options.folding, folded);
  const int m = options.cells;
  RealFft3d fft(m, FftPlanning::kEstimate);
  DeviceBuffer<float> mesh("power.mesh", fft.size()), shifted("power.shifted", fft.size());
  MassAssigner(m, Assignment::kPcs, &fft).assign(stream, particles, n, mesh.data(), shifted.data());
  fft.forward(stream, mesh.data());
  fft.forward(stream, shifted.data());
  const PowerModes modes{reinterpret_cast<Complex*>(mesh.data()),
                         reinterpret_cast<const Complex*>(shifted.data()),
                         {0, 0, m, m},
                         m / 2 + 1,
                         m / 2 + 1,
                         PowerModes::Half::kZ};
  return spectrum_of(sum_power(stream, modes, options), moments, options);
}

}  // namespace maki
