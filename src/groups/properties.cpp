#include "src/groups/properties.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "src/groups/centre.hpp"

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
  Measurement(const GroupFrame& frame, const ParticleRecord& deepest) : frame_(frame), centre_(deepest.source) {
    group_.deepest_id = deepest.id;
    group_.position = in_box({});
  }

  void measure_members(const ParticleRecord* begin, const ParticleRecord* end);
  // IDs, most bound first, after measure_members(); `potential` as in GroupPotentials.
  void order_by_binding(const ParticleRecord* begin, const ParticleRecord* end, const double* potential,
                        std::uint64_t* ids) const;
  // A sphere that should be wide enough for measure_spheres(), in trial `trial`.
  SphereQuery wide_sphere(int trial) const;
  // False where a wider sphere is needed: few particles are in this one, or its density stays above lowest_density().
  bool measure_spheres(const Sphere& sphere);
  const FofGroup& group() const { return group_; }

 private:
  Vector in_box(const Vector& from_centre) const;  // sides to length units
  Vector velocity(const ParticleRecord& particle) const;
  double lowest_density() const;  // of the spheres, mass / side^3
  double spin_within(const Sphere& sphere, const Overdensity& virial) const;

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

Vector Measurement::velocity(const ParticleRecord& particle) const {
  const auto& p = particle.momentum;
  return {p[0] / frame_.scale_factor, p[1] / frame_.scale_factor, p[2] / frame_.scale_factor};
}

void Measurement::measure_members(const ParticleRecord* begin, const ParticleRecord* end) {
  group_.length = static_cast<std::uint64_t>(end - begin);
  group_.least_id = begin->id;
  Vector place{}, flow{};
  for (const ParticleRecord* i = begin; i != end; ++i) {
    const double mass = i->source.mass;
    const Vector r = separation_of(i->source, centre_), v = velocity(*i);
    group_.mass += mass;
    for (std::size_t k = 0; k < 3; ++k) place[k] += mass * r[k], flow[k] += mass * v[k];
  }
  for (std::size_t k = 0; k < 3; ++k) place[k] /= group_.mass, flow[k] /= group_.mass;
  double square = 0;
  for (const ParticleRecord* i = begin; i != end; ++i) {
    const Vector v = velocity(*i);
    const double speed = norm({v[0] - flow[0], v[1] - flow[1], v[2] - flow[2]});
    square += i->source.mass * speed * speed;
  }
  group_.velocity = flow;
  group_.centre_of_mass = in_box(place);
  group_.offset = norm(place) * frame_.side;
  group_.velocity_dispersion = std::sqrt(square / (3 * group_.mass));
}

void Measurement::order_by_binding(const ParticleRecord* begin, const ParticleRecord* end, const double* potential,
                                   std::uint64_t* ids) const {
  const double unit = frame_.gravitational_constant / (frame_.scale_factor * frame_.side);  // of a potential
  const double expansion = frame_.hubble * frame_.scale_factor * frame_.side;
  std::vector<std::pair<double, std::uint64_t>> energy;  // per mass, and the ID
  for (const ParticleRecord* i = begin; i != end; ++i) {
    const Vector r = separation_of(i->source, centre_), v = velocity(*i);
    double square = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const double speed = v[k] - group_.velocity[k] + expansion * r[k];
      square += speed * speed;
    }
    energy.emplace_back(0.5 * square + unit * potential[i - begin], i->id);
  }
  std::sort(energy.begin(), energy.end());
  for (const auto& [value, id] : energy) *ids++ = id;
}

double Measurement::lowest_density() const {
  const double side = frame_.side;
  return *std::min_element(frame_.densities.begin(), frame_.densities.end()) * side * side * side;
}

SphereQuery Measurement::wide_sphere(int trial) const {
  const double radius = 1.2 * std::cbrt(3 * group_.mass / (4 * std::numbers::pi * lowest_density()));
  return {centre_, std::min(0.5, radius * std::pow(1.4, trial))};
}

double Measurement::spin_within(const Sphere& sphere, const Overdensity& virial) const {
  if (!(virial.mass > 0)) return 0;
  const auto inside = [&](std::size_t i) { return i < sphere.size() && sphere.distance(i) <= virial.radius; };
  Vector flow{}, momentum{};
  double mass = 0;
  for (std::size_t i = 0; inside(i); ++i) {
    const double m = sphere.particle(i).source.mass;
    const Vector v = velocity(sphere.particle(i));
    for (std::size_t k = 0; k < 3; ++k) flow[k] += m * v[k];
    mass += m;
  }
  for (std::size_t i = 0; inside(i); ++i) {
    const double m = sphere.particle(i).source.mass;
    const Vector r = separation_of(sphere.particle(i).source, centre_);
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

bool Measurement::measure_spheres(const Sphere& sphere) {
  if (sphere.radius() < 0.5 && (sphere.size() < kInnermost || !overdensity(sphere, lowest_density()))) return false;
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
  return true;
}

// Number of members of the groups whose spheres are looked up at a time, about.
constexpr double kBatch = 1 << 21;

// Collective. A group whose sphere was too small gets a larger one in the next round.
void measure_all_spheres(std::vector<Measurement>& all, const GroupMembers& members, const SphereSource& particles) {
  std::vector<std::size_t> waiting(all.size());
  std::iota(waiting.begin(), waiting.end(), std::size_t{0});
  std::vector<int> trials(all.size());
  for (;;) {
    if (sum_of(particles.ranks, std::uint64_t{waiting.size()}) == 0) return;
    std::vector<std::size_t> batch;
    for (double held = 0; held < kBatch && batch.size() < waiting.size();) {
      const std::size_t next = waiting[batch.size()];
      held += static_cast<double>(members.length(next)) * std::pow(1.4, 3 * trials[next]);
      batch.push_back(next);
    }
    std::vector<SphereQuery> queries;
    for (const std::size_t i : batch) queries.push_back(all[i].wide_sphere(trials[i]));
    const std::vector<Sphere> spheres = particles.look_up(queries);
    std::vector<char> done(batch.size());
#pragma omp parallel for schedule(dynamic)
    for (std::size_t k = 0; k < batch.size(); ++k) done[k] = all[batch[k]].measure_spheres(spheres[k]);
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(batch.size()));
    for (std::size_t k = 0; k < batch.size(); ++k) {
      if (done[k]) continue;
      ++trials[batch[k]];
      waiting.push_back(batch[k]);
    }
  }
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

MeasuredGroups measure_groups(const Stream& stream, const GroupMembers& members, const SphereSource& particles,
                              const GroupFrame& frame) {
  const GroupPotentials potentials = group_potentials(stream, members, frame.softening);
  std::vector<Measurement> all;
  for (const ParticleRecord* deepest : potentials.deepest) all.emplace_back(frame, *deepest);
  MeasuredGroups found;
  found.by_binding.resize(members.particles.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].measure_members(members.begin(i), members.end(i));
    const double* const potential = potentials.of_member.data() + members.begins[i];
    all[i].order_by_binding(members.begin(i), members.end(i), potential, found.by_binding.data() + members.begins[i]);
  }
  measure_all_spheres(all, members, particles);
  for (const Measurement& one : all) found.groups.push_back(one.group());
  return found;
}

}  // namespace maki
