#include "src/simulation/force_check.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/error.hpp"
#include "src/gravity/reference/direct.hpp"
#include "src/gravity/reference/ewald.hpp"

namespace maki {
namespace {

struct Sampled {
  Vector3 position, acceleration;
  double weight;  // number of particles of the set that it stands for
};

double square(const Vector3& v) { return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]; }

// Adds what all ranks and sites hold.
class Everywhere {
 public:
  Everywhere(const Communicator& ranks, sites::Sites& sites) : ranks_(ranks), sites_(sites) {}

  void sum(std::span<double> values) const {
    ranks_.sum(values);
    const std::vector<sites::Message> all = gather(std::as_bytes(values));
    std::fill(values.begin(), values.end(), 0.0);
    for (const sites::Message& message : all) {
      if (message.size() != values.size_bytes())
        throw Error("a message of another size came from a site", "", "run the same version at all sites");
      std::vector<double> one(values.size());
      if (!message.empty()) std::memcpy(one.data(), message.data(), message.size());
      for (std::size_t i = 0; i < one.size(); ++i) values[i] += one[i];
    }
  }

  // In the order of sites and ranks.
  std::vector<Sampled> all_of(std::vector<Sampled> mine) const {
    mine = all_of_ranks(std::move(mine));
    std::vector<Sampled> all;
    for (const sites::Message& message : gather(std::as_bytes(std::span(mine)))) {
      if (message.size() % sizeof(Sampled) != 0)
        throw Error("a message of another size came from a site", "", "run the same version at all sites");
      const std::size_t before = all.size();
      all.resize(before + message.size() / sizeof(Sampled));
      if (!message.empty()) std::memcpy(&all[before], message.data(), message.size());
    }
    return all;
  }

 private:
  std::vector<sites::Message> gather(std::span<const std::byte> mine) const {
    return sites_.gather(sites::Phase::kOutput, sites_.next_number(sites::Phase::kOutput), mine);
  }

  std::vector<Sampled> all_of_ranks(std::vector<Sampled> mine) const {
    const std::uint64_t count = mine.size();
    std::vector<std::uint64_t> counts(static_cast<std::size_t>(ranks_.size()));
    ranks_.all_gather(&count, counts.data(), sizeof count);
    const std::uint64_t most = *std::max_element(counts.begin(), counts.end());
    mine.resize(most);
    std::vector<Sampled> padded(most * counts.size()), all;
    ranks_.all_gather(mine.data(), padded.data(), most * sizeof(Sampled));
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      const auto begin = padded.begin() + static_cast<std::ptrdiff_t>(rank * most);
      all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(counts[rank]));
    }
    return all;
  }

  const Communicator& ranks_;
  sites::Sites& sites_;
};

void add(const Stream& stream, const VectorArray& acceleration, std::vector<Vector3>& sum) {
  const std::vector<float> x = acceleration.x.download(stream), y = acceleration.y.download(stream),
                           z = acceleration.z.download(stream);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i][0] += x[i], sum[i][1] += y[i], sum[i][2] += z[i];
}

// Errors relative to each particle's force, and how many particles each stands for.
struct WeightedError {
  double relative, weight;
};

// The error that the part `part` of all particles is below.
double quantile(const std::vector<WeightedError>& sorted, double part) {
  double all = 0, below = 0;
  for (const WeightedError& error : sorted) all += error.weight;
  for (const WeightedError& error : sorted) {
    below += error.weight;
    if (below >= part * all) return error.relative;
  }
  return sorted.back().relative;
}

ForceError compare(const std::vector<Sampled>& targets, const std::vector<Vector3>& exact) {
  ForceError error;
  error.targets = targets.size();
  double difference2 = 0, force2 = 0;
  std::vector<WeightedError> errors;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    Vector3 difference;
    for (std::size_t axis = 0; axis < 3; ++axis) difference[axis] = targets[t].acceleration[axis] - exact[t][axis];
    const double d2 = square(difference), a2 = square(exact[t]);
    difference2 += targets[t].weight * d2;
    force2 += targets[t].weight * a2;
    errors.push_back({a2 > 0 ? std::sqrt(d2 / a2) : 0, targets[t].weight});
  }
  std::sort(errors.begin(), errors.end(), [](const auto& a, const auto& b) { return a.relative < b.relative; });
  error.rms = force2 > 0 ? std::sqrt(difference2 / force2) : 0;
  error.median = quantile(errors, 0.5);
  error.percentile_99 = quantile(errors, 0.99);
  return error;
}

// Half of the wanted ones with equal chances, half with chances as the squares of their accelerations: in haloes a few
// particles make most of the mean square force, and of its error.
std::vector<Sampled> choose(const HostParticles& here, const std::vector<Vector3>& acceleration,
                            const Everywhere& everywhere, double wanted) {
  std::array<double, 2> sums{static_cast<double>(here.ids.size()), 0};
  for (const Vector3& a : acceleration) sums[1] += square(a);
  everywhere.sum(sums);
  std::vector<Sampled> chosen;
  for (std::size_t i = 0; i < here.ids.size(); ++i) {
    const double loud = sums[1] > 0 ? square(acceleration[i]) / sums[1] : 1 / sums[0];
    const double chance = wanted < sums[0] ? wanted * 0.5 * (1 / sums[0] + loud) : 1;
    const std::uint64_t below = chance < 1 ? static_cast<std::uint64_t>(chance * 0x1p64) : UINT64_MAX;
    if (XXH3_64bits(&here.ids[i], sizeof here.ids[i]) <= below)
      chosen.push_back({here.fractions[i], acceleration[i], 1 / std::min(chance, 1.0)});
  }
  return chosen;
}

}  // namespace

ForceError measure_force_error(const Stream& stream, const Particles& particles, const Gravity& gravity,
                               const Communicator& ranks, sites::Sites& sites, std::uint64_t wanted) {
  const HostParticles here = download_particles(stream, particles);
  std::vector<Vector3> acceleration(here.ids.size(), Vector3{});
  add(stream, gravity.short_acceleration(), acceleration);
  if (gravity.has_mesh()) add(stream, gravity.long_acceleration(), acceleration);

  const Everywhere everywhere(ranks, sites);
  const std::vector<Sampled> targets =
      everywhere.all_of(choose(here, acceleration, everywhere, static_cast<double>(wanted)));
  if (targets.empty()) return {};
  std::vector<Vector3> places;
  for (const Sampled& target : targets) places.push_back(target.position);

  const std::vector<double> masses(here.masses.begin(), here.masses.end());
  const ForceLaw& law = gravity.options().law;
  const SumOfParts sum = [&](std::span<double> values) { everywhere.sum(values); };
  const ReferenceForces exact =
      gravity.options().periodic
          ? ewald_reference_of_parts(here.fractions, masses, places,
                                     {.kind = law.softening_kind, .softening = law.softening}, sum)
          : direct_reference_of_parts(here.fractions, masses, places, {law.softening_kind, law.softening}, sum);
  return compare(targets, exact.acceleration);
}

}  // namespace maki
