#include "host/measure/projection.hpp"

#include "host/fft/mass_unit.hpp"

namespace maki {

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
