#include "host/measure/over_ranks.hpp"

#include <numbers>

#include "host/fft/particle_brick.hpp"
#include "host/measure/density_modes.cuh"

namespace maki {
namespace {

template <class Bin>
void append(std::vector<Bin>& all, const std::vector<Bin>& bins, const WaveRange& range) {
  for (const Bin& bin : bins)
    if (range.has(bin.k)) all.push_back(bin);
}

double shot_noise(const MassMoments& m) { return m.square / (m.mass * m.mass); }

CrossPower measure_cross_folding(const Communicator& communicator, const Stream& stream, const ParticleSets& sets,
                                 const MeasurePowerOptions& options) {
  DensityModes first(communicator, stream, sets.first, options), second(communicator, stream, sets.second, options);
  const auto sum = [&](DensityModes& a, DensityModes& b) {
    return sum_power(communicator, stream, a.modes(), b.modes().mesh, options);
  };
  const PowerSums ab = sum(first, second), aa = sum(first, first), bb = sum(second, second);
  const double a = first.moments().mass, b = second.moments().mass;
  CrossPower found{{}, shot_noise(first.moments()), shot_noise(second.moments())};
  for (std::size_t i = 0; i < ab.modes.size(); ++i) {
    if (ab.modes[i] == 0) continue;
    const auto n = static_cast<double>(ab.modes[i]);
    found.bins.push_back({ab.waves[i] / n * 2 * std::numbers::pi * options.folding, aa.power[i] / (n * a * a),
                          bb.power[i] / (n * b * b), ab.power[i] / (n * a * b), ab.modes[i], options.folding});
  }
  return found;
}

}  // namespace

MeasuredPower measure_power(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                            std::size_t n, const MeasurePowerOptions& options) {
  if (communicator.size() == 1) return measure_power(stream, particles, n, options);
  DensityModes density(communicator, stream, {particles, n}, options);
  const PowerModes modes = density.modes();
  return spectrum_of(sum_power(communicator, stream, modes, modes.mesh, options), density.moments(), options);
}

MeasuredPower measure_power_up_to(int highest, const Communicator& communicator, const Stream& stream,
                                  const MeshParticles& mine, const MeasurePowerOptions& options) {
  MeasuredPower all;
  for (const int folding : foldings_up_to(highest)) {
    const MeasuredPower one = measure_power(communicator, stream, mine.particles, mine.n, folded(options, folding));
    append(all.bins, one.bins, waves_of_folding(folding, highest, options.cells));
    all.shot_noise = one.shot_noise;
    all.nyquist = one.nyquist;
  }
  return all;
}

CrossPower measure_cross_up_to(int highest, const Communicator& communicator, const Stream& stream,
                               const ParticleSets& sets, const MeasurePowerOptions& options) {
  CrossPower all;
  for (const int folding : foldings_up_to(highest)) {
    const CrossPower one = measure_cross_folding(communicator, stream, sets, folded(options, folding));
    append(all.bins, one.bins, waves_of_folding(folding, highest, options.cells));
    all.shot_noise_first = one.shot_noise_first;
    all.shot_noise_second = one.shot_noise_second;
  }
  return all;
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
