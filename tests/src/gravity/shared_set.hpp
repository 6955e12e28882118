// Sets of particles whose ids are their places in the set, shared out over ranks, and forces gathered from them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "host/comm/communicator.hpp"
#include "src/gravity/gravity.hpp"
#include "src/gravity/reference/exact_sums.hpp"
#include "src/gravity/site_agreement.hpp"
#include "tests/kernels/particles/at_rest.hpp"

namespace maki::testing {

using Vectors = std::vector<std::array<double, 3>>;

struct Set {
  std::vector<SourceParticle> source;
  std::vector<Vector3> positions;
  std::vector<double> masses;

  explicit Set(std::vector<SourceParticle> s) : source(std::move(s)) {
    for (const SourceParticle& p : source) {
      positions.push_back({p.x / kSideToUnits, p.y / kSideToUnits, p.z / kSideToUnits});
      masses.push_back(p.mass);
    }
  }
};

// Owners of particles that are dealt to the ranks one by one.
inline auto dealt(const Communicator& ranks) {
  return [size = static_cast<std::size_t>(ranks.size())](std::size_t i) { return static_cast<int>(i % size); };
}

// Particles whose ids are their places in the set; rank r has those whose owner(i) is r.
template <class Owner>
void upload_share(const Stream& stream, const Set& set, const Communicator& ranks, const Owner& owner,
                  Particles& particles) {
  const auto is_mine = [&](std::size_t i) { return owner(i) == ranks.rank(); };
  upload_some_at_rest(stream, set.source, is_mine, particles);
}

// Bits of the particles' values, array after array for each by its place in the set, on all ranks.
inline std::vector<std::uint64_t> gather_bits(const Stream& stream, const Communicator& ranks, const Set& set,
                                              const Particles& particles,
                                              const std::vector<const DeviceBuffer<float>*>& arrays) {
  std::vector<std::uint64_t> bits(arrays.size() * set.source.size());
  const auto ids = particles.id.download(stream);
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    const auto values = arrays[a]->download(stream);
    EXPECT_EQ(values.size(), ids.size());
    for (std::size_t i = 0; i < std::min(ids.size(), values.size()); ++i)
      bits[arrays.size() * ids[i] + a] += std::bit_cast<std::uint32_t>(values[i]);
  }
  ranks.sum(bits);
  return bits;
}

// Of all particles by their place in the set, on all ranks; EXPECTs that each was somewhere once.
using Forces = ReferenceForces;
inline Forces gather(const Stream& stream, const Communicator& ranks, const Set& set, const Particles& particles,
                     const Gravity& gravity) {
  const auto ids = particles.id.download(stream);
  std::vector<double> sums(5 * set.source.size(), 0.0);
  const auto add = [&](const VectorArray& a, const DeviceBuffer<float>& p) {
    const auto x = a.x.download(stream), y = a.y.download(stream), z = a.z.download(stream), w = p.download(stream);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::array<double, 4> v{x[i], y[i], z[i], w[i]};
      for (std::size_t k = 0; k < 4; ++k) sums[5 * ids[i] + k] += v[k];
    }
  };
  EXPECT_EQ(gravity.short_acceleration().size(), ids.size());
  add(gravity.short_acceleration(), gravity.short_potential());
  if (gravity.has_mesh()) add(gravity.long_acceleration(), gravity.long_potential());
  for (const std::uint64_t id : ids) sums[5 * id + 4] += 1;
  ranks.sum(sums);
  Forces forces;
  for (std::size_t i = 0; i < set.source.size(); ++i) {
    forces.acceleration.push_back({sums[5 * i], sums[5 * i + 1], sums[5 * i + 2]});
    forces.potential.push_back(sums[5 * i + 3]);
    EXPECT_EQ(sums[5 * i + 4], 1.0) << "particle " << i;
  }
  return forces;
}

inline GravityOptions periodic() {
  GravityOptions options;
  options.mesh.cells = 32;
  options.law = make_force_law(Split::kPolynomial, 5, 4.5f / 32, Softening::kPlummer, 1e-4);
  options.deterministic = true;
  return options;
}

inline GravityOptions isolated(double theta, bool quadrupoles, double softening) {
  GravityOptions options;
  options.periodic = false;
  options.law = make_force_law(Split::kNone, 0, 0, Softening::kPlummer, softening);
  options.theta = theta;
  options.quadrupoles = quadrupoles;
  return options;
}

// Evaluations one after another over `ranks`, which are `all` or a site of them: move(e, i, p) each particle of the set
// before each, see(gravity, particles) after it. `owner` is of `all`; `steps` is null at one site.
template <class Owner, class Move, class See>
void follow(const Stream& stream, Set& set, const GravityOptions& options, const Communicator& all,
            const Communicator& ranks, SiteAgreement* steps, const Owner& owner, int evaluations, const Move& move,
            const See& see) {
  Particles particles;
  upload_share(stream, set, all, owner, particles);
  PhaseTimers timers;
  Gravity gravity(options, timers, ranks, steps);
  for (int e = 0; e < evaluations; ++e) {
    for (std::size_t i = 0; i < set.source.size(); ++i) move(e, i, set.source[i]);
    std::vector<SourceParticle> moved;
    for (const std::uint64_t id : particles.id.download(stream)) moved.push_back(set.source[id]);
    particles.source.upload(stream, moved);
    if (steps) steps->begin();
    gravity.evaluate(stream, particles, Ranges::kBoth, true);
    if (steps) steps->publish();
    see(gravity, particles);
  }
}

// The first of each `stride`.
template <class T>
std::vector<T> every(std::size_t stride, const std::vector<T>& all) {
  std::vector<T> some;
  for (std::size_t i = 0; i < all.size(); i += stride) some.push_back(all[i]);
  return some;
}

// Exact ones on every `stride`-th particle.
inline Forces exact_forces(const Set& set, const GravityOptions& options, std::size_t stride) {
  const Vectors targets = every(stride, set.positions);
  const double softening = options.law.softening;
  return options.periodic ? ewald_reference(set.positions, set.masses, targets, {.softening = softening})
                          : direct_reference(set.positions, set.masses, targets, {.softening = softening});
}

}  // namespace maki::testing
