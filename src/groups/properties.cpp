#include "src/groups/properties.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/groups/deepest.hpp"

namespace maki {
namespace {

using Vector = std::array<double, 3>;

Vector separation_of(const SourceParticle& to, const SourceParticle& from) {  // sides
  constexpr double unit = 1 / kSideToUnits;
  return {signed_difference(to.x, from.x) * unit, signed_difference(to.y, from.y) * unit,
          signed_difference(to.z, from.z) * unit};
}

double norm(const Vector& v) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

class Measurement {
 public:
  Measurement(const SortedParticles& particles, const GroupFrame& frame, std::uint32_t deepest)
      : particles_(particles), frame_(frame), centre_(particles.source[deepest]) {
    group_.deepest_id = particles.ids[deepest];
    group_.position = in_box({});
  }

  void measure_members(const std::uint32_t* begin, const std::uint32_t* end);
  void measure_spheres();
  const FofGroup& group() const { return group_; }

 private:
  Vector in_box(const Vector& from_centre) const;  // sides to length units
  Vector velocity(std::uint32_t i) const;
  Sphere wide_sphere() const;
  double spin_within(const Sphere& sphere, const Overdensity& virial) const;

  const SortedParticles& particles_;
  const GroupFrame& frame_;
  SourceParticle centre_;
  FofGroup group_;
};

Vector Measurement::in_box(const Vector& from_centre) const {
  const std::uint32_t at[3] = {centre_.x, centre_.y, centre_.z};
  Vector position;
  for (std::size_t k = 0; k < 3; ++k) {
    const double fraction = at[k] / kSideToUnits + from_centre[k];
    position[k] = frame_.corner[k] + (fraction - std::floor(fraction)) * frame_.side;
  }
  return position;
}

Vector Measurement::velocity(std::uint32_t i) const {
  const auto& p = particles_.momenta[i];
  return {p[0] / frame_.scale_factor, p[1] / frame_.scale_factor, p[2] / frame_.scale_factor};
}

void Measurement::measure_members(const std::uint32_t* begin, const std::uint32_t* end) {
  group_.length = static_cast<std::uint64_t>(end - begin);
  Vector place{}, flow{};
  for (const std::uint32_t* i = begin; i != end; ++i) {
    const double mass = particles_.source[*i].mass;
    const Vector r = separation_of(particles_.source[*i], centre_), v = velocity(*i);
    group_.mass += mass;
    for (std::size_t k = 0; k < 3; ++k) place[k] += mass * r[k], flow[k] += mass * v[k];
  }
  for (std::size_t k = 0; k < 3; ++k) place[k] /= group_.mass, flow[k] /= group_.mass;
  double square = 0;
  for (const std::uint32_t* i = begin; i != end; ++i) {
    const Vector v = velocity(*i);
    const double speed = norm({v[0] - flow[0], v[1] - flow[1], v[2] - flow[2]});
    square += particles_.source[*i].mass * speed * speed;
  }
  group_.velocity = flow;
  group_.centre_of_mass = in_box(place);
  group_.offset = norm(place) * frame_.side;
  group_.velocity_dispersion = std::sqrt(square / (3 * group_.mass));
}

// A sphere that is thinner at its edge than all of those that are asked for, or half a side.
Sphere Measurement::wide_sphere() const {
  const double thinnest = *std::min_element(frame_.densities.begin(), frame_.densities.end());
  const double density = thinnest * frame_.side * frame_.side * frame_.side;
  double radius = 1.2 * std::cbrt(3 * group_.mass / (4 * std::numbers::pi * density));
  for (;; radius *= 1.4) {
    Sphere sphere(particles_, centre_, radius);
    if (radius >= 0.5 || overdensity(sphere, density)) return sphere;
  }
}

double Measurement::spin_within(const Sphere& sphere, const Overdensity& virial) const {
  if (!(virial.mass > 0)) return 0;
  const auto inside = [&](std::size_t i) { return i < sphere.size() && sphere.distance(i) <= virial.radius; };
  Vector flow{}, momentum{};
  double mass = 0;
  for (std::size_t i = 0; inside(i); ++i) {
    const double m = particles_.source[sphere.particle(i)].mass;
    const Vector v = velocity(sphere.particle(i));
    for (std::size_t k = 0; k < 3; ++k) flow[k] += m * v[k];
    mass += m;
  }
  for (std::size_t i = 0; inside(i); ++i) {
    const double m = particles_.source[sphere.particle(i)].mass;
    const Vector r = separation_of(particles_.source[sphere.particle(i)], centre_);
    Vector v = velocity(sphere.particle(i));
    for (std::size_t k = 0; k < 3; ++k) v[k] -= flow[k] / mass;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t a = (k + 1) % 3, b = (k + 2) % 3;
      momentum[k] += m * (r[a] * v[b] - r[b] * v[a]);
    }
  }
  const double radius = frame_.scale_factor * virial.radius * frame_.side;  // physical
  const double circular = std::sqrt(frame_.gravitational_constant * virial.mass / radius);
  return norm(momentum) * frame_.scale_factor * frame_.side / (std::numbers::sqrt2 * virial.mass * circular * radius);
}

void Measurement::measure_spheres() {
  const Sphere sphere = wide_sphere();
  const double side = frame_.side, volume = side * side * side;
  for (std::size_t kind = 0; kind < kSphereKinds; ++kind)
    group_.spheres[kind] = overdensity(sphere, frame_.densities[kind] * volume).value_or(Overdensity{});
  group_.spin = spin_within(sphere, group_.spheres[kCrit200]);
  const CircularPeak peak = circular_peak(sphere, group_.spheres[kMean200].radius);
  const double unit = frame_.gravitational_constant / (frame_.scale_factor * side);  // of mass over sides
  group_.v_max = std::sqrt(unit * peak.mass_over_radius);
  group_.v_max_radius = peak.radius * side;
  const Overdensity& virial = group_.spheres[kCrit200];
  if (virial.mass > 0)
    group_.concentration = concentration_of(group_.v_max / std::sqrt(unit * virial.mass / virial.radius));
  for (Overdensity& one : group_.spheres) one.radius *= side;
}

}  // namespace

double virial_overdensity(double omega_matter, bool has_lambda) {
  const double x = omega_matter - 1, collapsed = 18 * std::numbers::pi * std::numbers::pi;
  return has_lambda ? collapsed + 82 * x - 39 * x * x : collapsed + 60 * x - 32 * x * x;
}

double concentration_of(double velocity_ratio) {
  constexpr double lowest = 2.163, highest = 1e4;
  const auto ratio = [](double c) { return std::sqrt(0.216 * c / (std::log1p(c) - c / (1 + c))); };
  if (!(velocity_ratio >= ratio(lowest))) return 0;
  double low = lowest, high = highest;
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (ratio(middle) < velocity_ratio ? low : high) = middle;
  }
  return low;
}

std::vector<FofGroup> measure_groups(const Stream& stream, const SortedParticles& particles,
                                     const GroupMembers& members, const GroupFrame& frame) {
  const std::vector<std::uint32_t> deepest = deepest_particles(stream, particles, members, frame.softening);
  std::vector<FofGroup> groups(members.groups());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Measurement measurement(particles, frame, deepest[i]);
    measurement.measure_members(members.begin(i), members.end(i));
    measurement.measure_spheres();
    groups[i] = measurement.group();
  }
  return groups;
}

}  // namespace maki
