#include "src/ic/models.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/measure/totals.hpp"
#include "kernels/error.hpp"
#include "src/ic/random.hpp"

namespace maki {

namespace {

using Vector = std::array<double, 3>;

struct Body {
  Vector position = {}, velocity = {};
  double mass = 0;
};

void require(bool good, const std::string& model, const std::string& reason, const std::string& advice) {
  if (!good) throw Error("Cannot make the " + model, reason, advice);
}

void require_positive(double value, const std::string& model, const std::string& name) {
  require(value > 0 && std::isfinite(value), model, name + " is " + std::to_string(value), "give a positive number");
}

void require_particles(std::uint64_t particles, const std::string& model) {
  require(particles > 0, model, "it has no particles", "give 1 or more");
}

// The share of a rank, before the whole set is centred.
struct Bodies {
  Share share;
  std::vector<Body> items;
};

// One body for each index of this rank's share, in parallel.
template <class Sampler>
Bodies sample_bodies(std::uint64_t count, const Communicator& ranks, const Sampler& sample) {
  Bodies bodies{share_of(count, ranks.rank(), ranks.size()), {}};
  bodies.items.resize(bodies.share.size());
#pragma omp parallel for schedule(static)
  for (std::uint64_t i = 0; i < bodies.items.size(); ++i) bodies.items[i] = sample(bodies.share.first + i);
  return bodies;
}

// Mass, then mass times position, then mass times velocity.
using Moments = std::array<DoubleDouble, 7>;

Moments moments(const std::vector<Body>& bodies) {
  std::vector<Moments> threads(static_cast<std::size_t>(omp_get_max_threads()));
#pragma omp parallel
  {
    Moments mine;
#pragma omp for schedule(static)
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      const Body& b = bodies[i];
      mine[0] = mine[0] + b.mass;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        mine[1 + axis] = mine[1 + axis] + b.mass * b.position[axis];
        mine[4 + axis] = mine[4 + axis] + b.mass * b.velocity[axis];
      }
    }
    threads[static_cast<std::size_t>(omp_get_thread_num())] = mine;
  }
  Moments total;
  for (const Moments& mine : threads)
    for (std::size_t m = 0; m < total.size(); ++m) total[m] = total[m] + mine[m];
  return total;
}

// Puts the centre of mass of all ranks' bodies at rest in the origin.
void centre(std::vector<Body>& bodies, const Communicator& ranks) {
  Moments sums = moments(bodies);
  sum_over_ranks(ranks, sums);
  Vector position, velocity;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    position[axis] = sums[1 + axis].value() / sums[0].value();
    velocity[axis] = sums[4 + axis].value() / sums[0].value();
  }
  for (Body& b : bodies) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      b.position[axis] -= position[axis];
      b.velocity[axis] -= velocity[axis];
    }
  }
}

Snapshot to_snapshot(Bodies bodies, const Communicator& ranks) {
  centre(bodies.items, ranks);
  Snapshot s;
  s.header.comoving = false;
  s.header.time = 0;
  s.header.gravitational_constant = 1;
  s.header.units = {.length_cgs = 1, .mass_cgs = 1, .velocity_cgs = 1, .with_h = false};
  s.resize(bodies.items.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    const Body& b = bodies.items[i];
    s.positions[i] = b.position;
    for (std::size_t axis = 0; axis < 3; ++axis) s.velocities[i][axis] = static_cast<float>(b.velocity[axis]);
    s.masses[i] = static_cast<float>(b.mass);
    s.ids[i] = bodies.share.first + i + 1;
  }
  const bool normal = std::ranges::all_of(s.masses, [](float mass) { return std::isnormal(mass); });
  require(largest_of(ranks, normal ? 0.0 : 1.0) == 0, "set", "a particle's mass is beyond single precision",
          "give masses of 1e-38 to 3e38 a particle");
  return s;
}

// A vector of given length; u and v uniform in (0, 1).
Vector isotropic(double length, double u, double v) {
  const double z = 2 * u - 1, across = std::sqrt(1 - z * z), phi = 2 * std::numbers::pi * v;
  return {length * across * std::cos(phi), length * across * std::sin(phi), length * z};
}

double plummer_mass_fraction(double r_over_a) { return std::pow(1 + 1 / (r_over_a * r_over_a), -1.5); }

// Speed over escape speed: density q^2 (1 - q^2)^(7/2), by rejection below 0.1.
double plummer_speed(const CounterRandom& random, std::uint64_t index, std::uint32_t first_draw) {
  for (std::uint32_t draw = first_draw;; ++draw) {
    const auto [q, height] = random.for_particle(index, draw);
    if (0.1 * height < q * q * std::pow(1 - q * q, 3.5)) return q;
  }
}

// Eccentric anomaly of a mean anomaly, by Newton's method.
double eccentric_anomaly(double mean, double e) {
  double anomaly = mean + e * std::sin(mean);
  for (int i = 0; i < 50; ++i) {
    const double step = (anomaly - e * std::sin(anomaly) - mean) / (1 - e * std::cos(anomaly));
    anomaly -= step;
    if (std::abs(step) < 1e-15) break;
  }
  return anomaly;
}

struct Orbit {
  double semi_major_axis, eccentricity, inclination, node, pericentre, mean_anomaly;
};

// Relative position and velocity on a Kepler orbit around the mass mu (G = 1).
Body on_orbit(const Orbit& o, double mu) {
  const double anomaly = eccentric_anomaly(o.mean_anomaly, o.eccentricity);
  const double c = std::cos(anomaly), s = std::sin(anomaly), b = std::sqrt(1 - o.eccentricity * o.eccentricity);
  const double rate = std::sqrt(mu / o.semi_major_axis) / (1 - o.eccentricity * c);
  const double cn = std::cos(o.node), sn = std::sin(o.node);
  const double cp = std::cos(o.pericentre), sp = std::sin(o.pericentre);
  const double ci = std::cos(o.inclination), si = std::sin(o.inclination);
  const Vector along = {cn * cp - sn * sp * ci, sn * cp + cn * sp * ci, sp * si};     // towards the pericentre
  const Vector across = {-cn * sp - sn * cp * ci, -sn * sp + cn * cp * ci, cp * si};  // a quarter turn ahead
  Body body;
  for (int i = 0; i < 3; ++i) {
    body.position[i] = o.semi_major_axis * ((c - o.eccentricity) * along[i] + b * s * across[i]);
    body.velocity[i] = rate * (-s * along[i] + b * c * across[i]);
  }
  return body;
}

// Radius inside which the fraction u of the disk's mass lies.
double disk_radius(const KeplerDiskParameters& p, double u) {
  const double power = p.surface_density_slope + 2;  // the mass inside r is proportional to r^power, or to ln r
  const double ratio = p.outer_radius / p.inner_radius;
  if (std::abs(power) < 1e-9) return p.inner_radius * std::pow(ratio, u);
  return p.inner_radius * std::pow(1 + u * (std::pow(ratio, power) - 1), 1 / power);
}

double rayleigh(double rms, double u) { return rms * std::sqrt(-std::log(u)); }

}  // namespace

Snapshot make_plummer(const PlummerParameters& p, const Communicator& ranks) {
  const std::string model = "Plummer sphere";
  require_particles(p.particles, model);
  require_positive(p.mass, model, "the mass");
  require_positive(p.scale_length, model, "the scale length");
  require(p.truncation_radius >= 0, model, "the truncation radius is negative", "give 0 for none");
  const double a = p.scale_length;
  const double inside = p.truncation_radius > 0 ? plummer_mass_fraction(p.truncation_radius / a) : 1;
  const CounterRandom random(p.seed, RandomStream::kPlummer);
  Bodies bodies = sample_bodies(p.particles, ranks, [&](std::uint64_t i) {
    const auto [u, cosine] = random.for_particle(i, 0);
    const auto [azimuth, v_cosine] = random.for_particle(i, 1);
    const auto [v_azimuth, unused] = random.for_particle(i, 2);
    const double r = a / std::sqrt(std::pow(inside * u, -2.0 / 3) - 1);
    const double escape = std::sqrt(2 * p.mass / std::sqrt(r * r + a * a));
    return Body{.position = isotropic(r, cosine, azimuth),
                .velocity = isotropic(escape * plummer_speed(random, i, 3), v_cosine, v_azimuth),
                .mass = p.mass * inside / static_cast<double>(p.particles)};
  });
  return to_snapshot(std::move(bodies), ranks);
}

Snapshot make_cold_sphere(const ColdSphereParameters& p, const Communicator& ranks) {
  const std::string model = "uniform sphere";
  require_particles(p.particles, model);
  require_positive(p.mass, model, "the mass");
  require_positive(p.radius, model, "the radius");
  require(p.virial_ratio >= 0 && std::isfinite(p.virial_ratio), model,
          "the virial ratio is " + std::to_string(p.virial_ratio), "give 0 or more");
  // 2T = 3 M sigma^2 = virial_ratio |W|, |W| = 3/5 M^2/R.
  const double sigma = std::sqrt(p.virial_ratio * p.mass / (5 * p.radius));
  const CounterRandom random(p.seed, RandomStream::kSphere);
  Bodies bodies = sample_bodies(p.particles, ranks, [&](std::uint64_t i) {
    const auto [u, cosine] = random.for_particle(i, 0);
    const auto [azimuth, phase] = random.for_particle(i, 1);
    Body body{.position = isotropic(p.radius * std::cbrt(u), cosine, azimuth),
              .mass = p.mass / static_cast<double>(p.particles)};
    if (sigma > 0) {
      const auto [v, w] = random.for_particle(i, 2);
      const auto [other_phase, unused] = random.for_particle(i, 3);
      const double r1 = sigma * std::sqrt(-2 * std::log(v)), angle1 = 2 * std::numbers::pi * phase;
      const double r2 = sigma * std::sqrt(-2 * std::log(w)), angle2 = 2 * std::numbers::pi * other_phase;
      body.velocity = {r1 * std::cos(angle1), r1 * std::sin(angle1), r2 * std::cos(angle2)};
    }
    return body;
  });
  return to_snapshot(std::move(bodies), ranks);
}

Snapshot make_kepler_disk(const KeplerDiskParameters& p, const Communicator& ranks) {
  const std::string model = "Kepler disk";
  require_particles(p.particles, model);
  require_positive(p.central_mass, model, "the central mass");
  require_positive(p.disk_mass, model, "the disk's mass");
  require_positive(p.inner_radius, model, "the inner radius");
  require(p.outer_radius >= p.inner_radius && std::isfinite(p.outer_radius), model,
          "its outer radius is " + std::to_string(p.outer_radius), "give one not below the inner radius");
  require(p.eccentricity >= 0 && p.eccentricity <= 0.5 && p.inclination >= 0 && p.inclination <= 0.5, model,
          "the rms eccentricity " + std::to_string(p.eccentricity) + " or inclination " +
              std::to_string(p.inclination) + " of its orbits is out of range",
          "keep both at or below 0.5");
  const CounterRandom random(p.seed, RandomStream::kDisk);
  Bodies bodies = sample_bodies(p.particles + 1, ranks, [&](std::uint64_t i) {
    if (i == 0) return Body{.mass = p.central_mass};
    const auto [u, v] = random.for_particle(i, 0);
    const auto [tilt, node] = random.for_particle(i, 1);
    const auto [pericentre, anomaly] = random.for_particle(i, 2);
    const double turn = 2 * std::numbers::pi;
    Body body = on_orbit({.semi_major_axis = disk_radius(p, u),
                          .eccentricity = std::min(rayleigh(p.eccentricity, v), 0.95),
                          .inclination = rayleigh(p.inclination, tilt),
                          .node = turn * node,
                          .pericentre = turn * pericentre,
                          .mean_anomaly = turn * anomaly},
                         p.central_mass);
    body.mass = p.disk_mass / static_cast<double>(p.particles);
    return body;
  });
  return to_snapshot(std::move(bodies), ranks);
}

Snapshot make_two_body(const TwoBodyParameters& p, const Communicator& ranks) {
  const std::string model = "two-body orbit";
  require_positive(p.mass1, model, "the first mass");
  require_positive(p.mass2, model, "the second mass");
  require_positive(p.semi_major_axis, model, "the semi-major axis");
  require(p.eccentricity >= 0 && p.eccentricity < 1, model, "the eccentricity is " + std::to_string(p.eccentricity),
          "give one from 0 to below 1");
  const double total = p.mass1 + p.mass2;
  Body second;
  second.position[0] = p.semi_major_axis * (1 + p.eccentricity);
  second.velocity[1] = std::sqrt(total / p.semi_major_axis * (1 - p.eccentricity) / (1 + p.eccentricity));
  second.mass = p.mass2;
  const Body first{.mass = p.mass1};
  return to_snapshot(sample_bodies(2, ranks, [&](std::uint64_t i) { return i == 0 ? first : second; }), ranks);
}

}  // namespace maki
