#include "host/measure/over_ranks.hpp"

#include <array>

#include "host/fft/particle_brick.hpp"
#include "host/fft/pencil_fft.hpp"
#include "kernels/error.hpp"
#include "kernels/measure/power_parts.cuh"

namespace maki {

namespace {

// Modes of this rank's pencils, lines [ky][kz][kx].
PowerModes modes_of(const PencilFft& fft, DeviceBuffer<float>& mesh, DeviceBuffer<float>& shifted) {
  const PencilBox held = fft.modes();
  return {reinterpret_cast<Complex*>(mesh.data()),
          reinterpret_cast<const Complex*>(shifted.data()),
          {held.along[1].first, held.along[2].first, held.along[1].count(), held.along[2].count()},
          fft.layout().cells(),
          static_cast<int>(fft.mode_row() / 2),
          PowerModes::Half::kY};
}

void check_mesh(int cells) {
  if (cells < 8 || cells % 2)
    throw Error("a mesh of " + std::to_string(cells) + " cells a side", "it has to be even and at least 8",
                "choose an even number from 8 up");
}

}  // namespace

MeasuredPower measure_power(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                            std::size_t n, const MeasurePowerOptions& options) {
  if (communicator.size() == 1) return measure_power(stream, particles, n, options);
  check_power_options(options);
  check_mesh(options.cells);
  const MassMoments mine = mass_moments(stream, particles, n);
  std::array<double, 2> all = {mine.mass, mine.square};
  communicator.sum(all);
  const MassMoments moments{all[0], all[1]};
  check_mass(moments);
  DeviceBuffer<SourceParticle> folded("power.folded");
  particles = fold_particles(stream, particles, n, options.folding, folded);
  const MassUnit unit = choose_mass_unit(communicator, stream, Assignment::kPcs, options.cells, particles, n);
  PencilFft fft(communicator, options.cells);
  DeviceBuffer<float> mesh("power.mesh", fft.size()), shifted("power.shifted", fft.size());
  ParticleBrick(communicator, fft.layout(), fft.real_row(), Assignment::kPcs, true, 0)
      .assign(stream, particles, n, unit, mesh.data(), shifted.data());
  fft.forward(stream, mesh.data());
  fft.forward(stream, shifted.data());
  PowerSums sums = sum_power(stream, modes_of(fft, mesh, shifted), options);
  communicator.sum(sums.waves);
  communicator.sum(sums.power);
  communicator.sum(sums.modes);
  return spectrum_of(sums, moments, options);
}

std::vector<double> project_density(const Communicator& communicator, const Stream& stream,
                                    const SourceParticle* particles, std::size_t n, const ProjectionOptions& options) {
  MassTotals totals;
  if (options.count_particles) {
    totals.particles = n;
    communicator.sum({&totals.particles, 1});
  } else {
    totals = mass_totals(communicator, stream, particles, n);
  }
  const MassUnit unit = projection_unit(totals, options.count_particles);
  std::vector<std::uint64_t> counts = project_counts(stream, particles, n, unit, options);
  communicator.sum(counts);
  return density_of_counts(counts, unit, options);
}

}  // namespace maki
