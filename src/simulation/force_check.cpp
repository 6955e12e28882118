#include "src/simulation/force_check.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "src/gravity/reference/exact_sums.hpp"
#include "src/gravity/tree_gravity.hpp"
#include "wan/sites/gathered_set.hpp"

namespace maki {
namespace {

// Particles in some order, of this rank.
struct Accelerations {
  HostParticles particles;
  std::vector<Vector3> run;  // of both ranges
  std::vector<Vector3> off;  // `run` minus those of the strict walk; zeros without a tree
};

struct Sampled {
  Vector3 position, acceleration, off;  // as Accelerations
  double weight;                        // number of particles of the set that it represents
};

double square(const Vector3& v) { return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]; }
Vector3 minus(const Vector3& a, const Vector3& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

// Particles at the positions of the force evaluation, without remainders of coordinates. Their momenta hold
// accelerations of the run, which move with them.
Particles with_accelerations(const Stream& stream, const Particles& of, const VectorArray& acceleration) {
  Particles particles = copy_of(stream, of);
  particles.momentum.copy_from(stream, acceleration);
  particles.remainder.fill_zero(stream);
  return particles;
}

// The accelerations of a new tree with a smaller opening angle. Particles and `carried` get its order, and over ranks
// move to its domains.
std::vector<std::array<float, 3>> strict_walk(const Stream& stream, GravityOptions options, const Communicator& ranks,
                                              Particles& particles, VectorArray& carried) {
  options.theta *= kStrictTheta;
  options.open_by_error = false;
  options.law.refine_root = true;
  options.fixed_reuse = 1;
  options.list_budget = kForceCheckLists;
  PhaseTimers timers;
  sites::Sites alone(ranks);
  SiteAgreement agreement(alone);
  TreeGravity tree(options, timers, ranks, agreement);
  agreement.begin();
  tree.agree_with_sites();
  tree.prepare(stream, particles, &carried);
  VectorArray found("check.strict");
  found.resize(particles.size());
  tree.evaluate(stream, particles, {found.view(), nullptr});
  agreement.publish();
  return found.download(stream);
}

Accelerations accelerations_of(const Stream& stream, const GravityOptions& options, const Communicator& ranks,
                               Particles& with_near, VectorArray& far) {
  std::vector<std::array<float, 3>> strict;
  if (!options.direct) strict = strict_walk(stream, options, ranks, with_near, far);
  const auto of_mesh = far.download(stream);
  Accelerations found{download_particles(stream, with_near), std::vector<Vector3>(of_mesh.size()),
                      std::vector<Vector3>(of_mesh.size())};
  for (std::size_t i = 0; i < of_mesh.size(); ++i)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double near = found.particles.momenta[i][axis];
      found.run[i][axis] = of_mesh[i][axis] + near;
      found.off[i][axis] = options.direct ? 0 : near - strict[i][axis];
    }
  return found;
}

// In the order of ranks.
std::vector<Sampled> all_of(const Communicator& ranks, const std::vector<Sampled>& mine) {
  return joined(exchange_all(ranks, std::vector(static_cast<std::size_t>(ranks.size()), mine)));
}

// Of all particles.
struct SquareSums {
  double particles, run, off;
};

SquareSums square_sums(const Communicator& ranks, const Accelerations& of) {
  std::array<double, 3> sums{static_cast<double>(of.run.size()), 0, 0};
  for (const Vector3& a : of.run) sums[1] += square(a);
  for (const Vector3& a : of.off) sums[2] += square(a);
  ranks.sum(sums);
  return {sums[0], sums[1], sums[2]};
}

// Draws a third of the wanted particles with equal probability, a third in proportion to the squares of their
// accelerations, and a third to the squares of their differences from the strict walk: a few particles in haloes have
// most of the mean square error.
std::vector<Sampled> choose(const Accelerations& of, const SquareSums& sums, double wanted) {
  const auto part = [](double of_one, double of_all, double otherwise) {
    return of_all > 0 ? of_one / of_all : otherwise;
  };
  std::vector<Sampled> chosen;
  for (std::size_t i = 0; i < of.run.size(); ++i) {
    const double even = 1 / sums.particles;
    const double chance =
        wanted / 3 * (even + part(square(of.run[i]), sums.run, even) + part(square(of.off[i]), sums.off, even));
    const bool all = wanted >= sums.particles || chance >= 1;
    const std::uint64_t below = all ? UINT64_MAX : static_cast<std::uint64_t>(chance * 0x1p64);
    if (XXH3_64bits(&of.particles.ids[i], sizeof of.particles.ids[i]) <= below)
      chosen.push_back({of.particles.fractions[i], of.run[i], of.off[i], all ? 1 : 1 / chance});
  }
  return chosen;
}

// An error relative to the particle's force, and the number of particles that it represents.
struct WeightedError {
  double relative, weight;
};

// The error below which the fraction `part` of all particles lies.
double quantile(const std::vector<WeightedError>& sorted, double part) {
  double all = 0, below = 0;
  for (const WeightedError& error : sorted) all += error.weight;
  for (const WeightedError& error : sorted) {
    below += error.weight;
    if (below >= part * all) return error.relative;
  }
  return sorted.back().relative;
}

// The mean square by the difference estimator of survey sampling: the squared differences from the strict walk, known
// for all particles, plus the sample's estimate of the squared true errors minus the squared differences.
ForceError compare(const std::vector<Sampled>& targets, const std::vector<Vector3>& exact, const SquareSums& sums) {
  ForceError error;
  error.targets = targets.size();
  double sampled = 0, corrected = sums.off;
  std::vector<WeightedError> errors;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const double d2 = square(minus(targets[t].acceleration, exact[t])), a2 = square(exact[t]);
    sampled += targets[t].weight * d2;
    corrected += targets[t].weight * (d2 - square(targets[t].off));
    errors.push_back({a2 > 0 ? std::sqrt(d2 / a2) : 0, targets[t].weight});
  }
  std::sort(errors.begin(), errors.end(), [](const auto& a, const auto& b) { return a.relative < b.relative; });
  error.rms = sums.run > 0 ? std::sqrt((corrected > 0 ? corrected : sampled) / sums.run) : 0;
  error.median = quantile(errors, 0.5);
  error.percentile_99 = quantile(errors, 0.99);
  return error;
}

ForceError error_of(const GravityOptions& options, const Communicator& ranks, const Accelerations& found,
                    std::uint64_t wanted) {
  const SquareSums sums = square_sums(ranks, found);
  const std::vector<Sampled> targets = all_of(ranks, choose(found, sums, static_cast<double>(wanted)));
  if (targets.empty()) return {};
  std::vector<Vector3> places;
  for (const Sampled& target : targets) places.push_back(target.position);

  const std::vector<double> masses(found.particles.masses.begin(), found.particles.masses.end());
  const ReferenceOptions softened{options.law.softening_kind, options.law.softening};
  const SumOfParts sum = [&](std::span<double> values) { ranks.sum(values); };
  const ReferenceForces exact = options.periodic
                                    ? ewald_reference(found.particles.fractions, masses, places, softened, sum)
                                    : direct_reference(found.particles.fractions, masses, places, softened, sum);
  return compare(targets, exact.acceleration, sums);
}

}  // namespace

ForceError measure_force_error(const Stream& stream, const Particles& particles, const Gravity& gravity,
                               const Communicator& ranks, sites::Sites& sites, std::uint64_t wanted) {
  VectorArray far("check.far");
  far.resize(particles.size());
  if (gravity.has_mesh())
    far.copy_from(stream, gravity.long_acceleration());
  else
    far.fill_zero(stream);
  // Each range has its own copy of the particles.
  sites::GatheredParticles far_all(sites, stream, with_accelerations(stream, particles, far));
  far = std::move(far_all.particles().momentum);
  far_all.particles() = {};
  sites::GatheredParticles all(sites, stream, with_accelerations(stream, particles, gravity.short_acceleration()));
  ForceError error;
  if (all.here())
    error = error_of(gravity.options(), ranks, accelerations_of(stream, gravity.options(), ranks, all.particles(), far),
                     wanted);
  const std::span<const std::byte> bytes = sites::as_bytes_of(error);
  return sites::value_of<ForceError>(sites::from_site(sites, all.place(), {bytes.begin(), bytes.end()}));
}

}  // namespace maki
