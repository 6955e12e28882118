#include "host/domain/rank_domains.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "host/domain/migrate.hpp"

namespace maki {
namespace {

// In k of 8 places, samples of work are replaced by samples of particles; k rises until no rank has too many particles.
constexpr int kMixtures = 8;
constexpr double kLeastBound = 1.2;  // particles of a rank over the mean: samples and smoothing are no finer

// Replaces the next eighth of `points`.
void mix(std::span<const SamplePoint> numbers, int eighth, std::span<SamplePoint> points) {
  const std::size_t count = points.size();
  for (auto i = static_cast<std::size_t>(eighth); i < count && !numbers.empty(); i += kMixtures)
    points[i] = numbers[i * numbers.size() / count];
}

}  // namespace

void RankDomains::cut(const Stream& stream, const Particles& particles, const std::function<Costs()>& costs) {
  if (ranks_.size() == 1) return;
  Costs cost = costs();
  Samples samples = gather_samples(stream, ranks_, particles, cost, updates_);
  const auto divided = [&, previous = domains_] {
    return previous ? multisect(samples.points, *previous, Smoothing{})
                    : multisect(samples.points, choose_factors(ranks_.size()));
  };
  domains_ = divided();
  if (most_particles_ > 0) {
    cost = {nullptr, cost.groups, cost.count};
    const Samples numbers = gather_samples(stream, ranks_, particles, cost, updates_);
    const double mean = static_cast<double>(numbers.cost) / ranks_.size();
    const double most = std::max(kLeastBound, static_cast<double>(most_particles_) / mean);
    for (int mixed = 0; mixed < kMixtures && imbalance(numbers.points, *domains_) > most; ++mixed) {
      mix(numbers.points, mixed, samples.points);
      domains_ = divided();
    }
  }
  ++updates_;
}

void RankDomains::move(const Stream& stream, Particles& particles, VectorArray* carried) const {
  if (!domains_) return;
  std::array<DeviceBuffer<float>*, 3> extra{};
  if (carried) extra = {&carried->x, &carried->y, &carried->z};
  migrate(stream, ranks_, *domains_, particles, std::span(extra.data(), carried ? 3 : 0));
}

}  // namespace maki
