#include "src/groups/properties.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "src/groups/centre.hpp"
#include "tests/src/groups/halo.hpp"
#include "tests/test_stream.hpp"
#include "tests/threads.hpp"

namespace maki {
namespace {

using namespace test;

struct Measured {
  GroupMembers members;
  std::vector<FofGroup> groups;
  std::vector<std::uint64_t> by_binding;
};

Measured measure(const HaloSet& set, double length, std::uint64_t minimum, const GroupFrame& frame) {
  const Stream& stream = test_stream();
  const Communicator alone = Communicator::self();
  Particles particles;
  set.upload(stream, particles);
  const SortedParticles own = sort_particles(stream, particles);
  const RankBoxes boxes(own, alone);
  Measured m{collect_groups(stream, own, boxes, length, minimum, alone), {}, {}};
  MeasuredGroups found = measure_groups(stream, m.members, SphereSource{own, boxes, alone}, frame);
  m.groups = std::move(found.groups);
  m.by_binding = std::move(found.by_binding);
  return m;
}

double density_within(const NfwHalo& halo, double radius) {
  const double mass = halo.mass * nfw_mass(halo.concentration * radius / halo.radius) / nfw_mass(halo.concentration);
  return mass / (4 * std::numbers::pi / 3 * std::pow(radius, 3));
}

// A halo of 20000 particles across the corner of a box of side 100, at a = 1/2.
struct OneHalo {
  NfwHalo halo{.centre = {0.999, 0.001, 0.0},
               .mass = 5000,
               .particles = 20000,
               .velocity = {30, -20, 10},  // canonical: twice as much is peculiar
               .rotation = 1000};
  GroupFrame frame{.side = 100, .scale_factor = 0.5, .gravitational_constant = 43, .softening = 1e-5};
  HaloSet set;

  OneHalo() {
    add_halo(set, halo, 3);
    const double virial = density_within(halo, halo.radius) / 1e6;  // of lengths in units
    frame.densities = {virial / 3, virial, 2.5 * virial, virial / 2};
  }
};

TEST(GroupProperties, OfAnNfwHalo) {
  const OneHalo one;
  const Measured m = measure(one.set, 0.008, 32, one.frame);
  ASSERT_EQ(m.groups.size(), 1u);
  const FofGroup& g = m.groups[0];
  EXPECT_EQ(g.length, 20000u);
  const double all = 5000 * nfw_mass(16) / nfw_mass(8);
  EXPECT_NEAR(g.mass, all, 1e-5 * all);
  EXPECT_NEAR(g.spheres[kCrit200].mass, 5000, 50);
  EXPECT_NEAR(g.spheres[kCrit200].radius, 2, 0.02);
  for (const Overdensity& sphere : g.spheres) {
    const double radius = sphere.radius / 100;
    EXPECT_NEAR(sphere.mass, 5000 * nfw_mass(8 * radius / 0.02) / nfw_mass(8), 0.01 * sphere.mass);
  }
  EXPECT_GT(g.spheres[kMean200].radius, g.spheres[kTopHat200].radius);
  EXPECT_LT(g.spheres[kCrit500].radius, g.spheres[kCrit200].radius);
  // v_max at 2.163 scale radii, of physical lengths.
  const double peak = 2.163 * 2.0 / 8;
  const double v_max = std::sqrt(43 * 5000 * nfw_mass(2.163) / nfw_mass(8) / (0.5 * peak));
  EXPECT_NEAR(g.v_max, v_max, 0.02 * v_max);
  EXPECT_NEAR(g.v_max_radius, peak, 0.25 * peak);  // the peak is flat
  EXPECT_NEAR(g.concentration, 8, 0.4);
  EXPECT_NEAR(g.velocity[0], 60, 2);
  EXPECT_NEAR(g.velocity[1], -40, 2);
  EXPECT_NEAR(g.velocity[2], 20, 1e-3);
  const double distance = std::hypot(std::remainder(g.position[0] - 99.9, 100),
                                     std::remainder(g.position[1] - 0.1, 100), std::remainder(g.position[2], 100));
  EXPECT_LT(distance, 0.02);
  for (const auto& position : {g.position, g.centre_of_mass})
    for (const double x : position) EXPECT_TRUE(x >= 0 && x < 100) << x;
  EXPECT_NEAR(g.offset,
              std::hypot(std::remainder(g.position[0] - g.centre_of_mass[0], 100),
                         std::remainder(g.position[1] - g.centre_of_mass[1], 100),
                         std::remainder(g.position[2] - g.centre_of_mass[2], 100)),
              1e-9);
}

// Solid rotation: J = 2/3 omega sum m r^2, and a third of that square is the variance on an axis.
TEST(GroupProperties, SpinAndDispersionOfARotatingHalo) {
  const OneHalo one;
  const FofGroup g = measure(one.set, 0.008, 32, one.frame).groups.at(0);
  double inside = 0, all = 0, members = 0;  // sums of m r^2 (sides)
  for (std::size_t i = 0; i < one.set.masses.size(); ++i) {
    double square = 0;
    for (std::size_t k = 0; k < 3; ++k)
      square += std::pow(std::remainder(one.set.fractions[i][k] - one.halo.centre[k], 1), 2);
    all += one.set.masses[i] * square;
    members += one.set.masses[i];
    if (std::sqrt(square) <= 0.02) inside += one.set.masses[i] * square;
  }
  const double omega = 1000 / 0.5;  // peculiar velocity per side
  const double momentum = 2.0 / 3 * omega * inside * 0.5 * 100;
  const double circular = std::sqrt(43 * 5000 / (0.5 * 2));
  EXPECT_NEAR(g.spin, momentum / (std::sqrt(2) * 5000 * circular * 0.5 * 2), 0.02 * g.spin);
  EXPECT_NEAR(g.velocity_dispersion, omega * std::sqrt(2.0 / 3 * all / members / 3), 0.02 * g.velocity_dispersion);
}

// Haloes of 60 to 3000 particles, so that centres are found in both ways, and field particles.
HaloSet many_haloes() {
  HaloSet set;
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> u(0, 1);
  for (unsigned k = 0; k < 24; ++k) {
    NfwHalo halo;
    halo.centre = {u(random), u(random), u(random)};
    halo.particles = k < 3 ? 3000 - 900 * k : 60 + 10 * (k % 7);
    halo.radius = 0.02 * std::cbrt(static_cast<double>(halo.particles) / 3000);
    halo.edge = 1;
    halo.mass = static_cast<double>(halo.particles);
    add_halo(set, halo, k);
  }
  for (int i = 0; i < 500; ++i) set.add({u(random), u(random), u(random)}, {0, 0, 0}, 1);
  return set;
}

GroupFrame frame_of_many() {
  GroupFrame frame;
  frame.softening = 1e-4;
  const double virial = 3000 / (4 * std::numbers::pi / 3 * std::pow(0.02, 3));
  frame.densities = {virial / 3, virial, 2.5 * virial, virial / 2};
  return frame;
}

TEST(GroupProperties, AreInOrderAndOfTheRightMembers) {
  const Measured m = measure(many_haloes(), 0.004, 32, frame_of_many());
  ASSERT_GT(m.groups.size(), 20u);
  for (std::size_t i = 0; i < m.groups.size(); ++i) {
    EXPECT_EQ(m.groups[i].length, m.members.length(i));
    EXPECT_GE(m.groups[i].length, 32u);
    EXPECT_EQ(m.groups[i].least_id, m.members.begin(i)->id);
    for (const ParticleRecord* member = m.members.begin(i) + 1; member != m.members.end(i); ++member)
      EXPECT_LT(member[-1].id, member->id);
    if (i == 0) continue;
    const FofGroup &before = m.groups[i - 1], &group = m.groups[i];
    EXPECT_TRUE(group.length < before.length || (group.length == before.length && group.least_id > before.least_id));
  }
}

// The deepest particle of a long group, by tree and candidates, is that of all exact sums.
TEST(GroupProperties, CentreIsTheDeepestOfAll) {
  const double softening = 1e-4;
  const Measured m = measure(many_haloes(), 0.004, 32, frame_of_many());
  ASSERT_GT(m.members.length(0), kDirectLength);
  for (std::size_t group = 0; group < 4; ++group) {
    double lowest = 0;
    std::uint64_t id = 0;
    for (const ParticleRecord* i = m.members.begin(group); i != m.members.end(group); ++i) {
      double potential = 0;
      for (const ParticleRecord* j = m.members.begin(group); j != m.members.end(group); ++j) {
        const auto squared = static_cast<double>(distance_squared(i->source, j->source));
        const double softened = squared / kSideToUnits / kSideToUnits + softening * softening;
        if (i != j) potential -= j->source.mass / std::sqrt(softened);
      }
      if (potential < lowest) lowest = potential, id = i->id;
    }
    EXPECT_EQ(m.groups[group].deepest_id, id) << group;
  }
}

// Kinetic energy about the mean velocity with the Hubble flow, and potential, against plain sums.
TEST(GroupProperties, MembersAreInTheOrderOfTheirBinding) {
  GroupFrame frame = frame_of_many();
  frame.side = 100, frame.scale_factor = 0.5, frame.gravitational_constant = 43, frame.hubble = 300;
  const Measured m = measure(many_haloes(), 0.004, 32, frame);
  ASSERT_EQ(m.by_binding.size(), m.members.particles.size());
  for (const std::size_t group : {std::size_t{6}, m.groups.size() - 1}) {
    ASSERT_LE(m.members.length(group), kDirectLength);  // exact potentials
    const ParticleRecord *const begin = m.members.begin(group), *const end = m.members.end(group);
    const ParticleRecord* const centre =
        std::find_if(begin, end, [&](const ParticleRecord& p) { return p.id == m.groups[group].deepest_id; });
    std::vector<std::pair<double, std::uint64_t>> expected;
    for (const ParticleRecord* i = begin; i != end; ++i) {
      double potential = 0, kinetic = 0;
      for (const ParticleRecord* j = begin; j != end; ++j) {
        const auto squared = static_cast<double>(distance_squared(i->source, j->source));
        const double softened = squared / kSideToUnits / kSideToUnits + frame.softening * frame.softening;
        if (i != j) potential -= 43 * j->source.mass / (0.5 * 100 * std::sqrt(softened));
      }
      const std::int32_t away[3] = {signed_difference(i->source.x, centre->source.x),
                                    signed_difference(i->source.y, centre->source.y),
                                    signed_difference(i->source.z, centre->source.z)};
      for (std::size_t k = 0; k < 3; ++k) {
        const double flow = 300 * 0.5 * 100 * away[k] / kSideToUnits;
        kinetic += 0.5 * std::pow(i->momentum[k] / 0.5 - m.groups[group].velocity[k] + flow, 2);
      }
      expected.emplace_back(kinetic + potential, i->id);
    }
    std::sort(expected.begin(), expected.end());
    const std::uint64_t* const found = m.by_binding.data() + m.members.begins[group];
    for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_EQ(found[k], expected[k].second) << k;
  }
}

TEST(GroupProperties, AreTheSameBitsForAnyNumberOfThreads) {
  const HaloSet set = many_haloes();
  const auto bytes_of_groups = [&] {
    const std::vector<FofGroup> groups = measure(set, 0.004, 32, frame_of_many()).groups;
    return std::string(reinterpret_cast<const char*>(groups.data()), groups.size() * sizeof(FofGroup));
  };
  expect_same_for_threads(bytes_of_groups, {1, 2, 5});
}

TEST(GroupProperties, WithoutGroups) {
  HaloSet set;
  EXPECT_EQ(measure(set, 0.01, 32, frame_of_many()).groups.size(), 0u);
  set.add({0.5, 0.5, 0.5}, {1, 2, 3}, 4);
  EXPECT_EQ(measure(set, 0.01, 32, frame_of_many()).groups.size(), 0u);
  const std::vector<FofGroup> one = measure(set, 0.01, 1, frame_of_many()).groups;
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].length, 1u);
  EXPECT_EQ(one[0].mass, 4);
  EXPECT_EQ(one[0].v_max, 0);
  EXPECT_EQ(one[0].velocity_dispersion, 0);
}

TEST(GroupProperties, ConcentrationInvertsTheRatioOfVelocities) {
  for (const double c : {2.5, 5.0, 10.0, 40.0})
    EXPECT_NEAR(concentration_of(std::sqrt(0.216 * c / nfw_mass(c))), c, 1e-9 * c);
  EXPECT_EQ(concentration_of(0.9), 0);
  EXPECT_EQ(concentration_of(0), 0);
}

TEST(GroupProperties, VirialOverdensities) {
  EXPECT_NEAR(virial_overdensity(1, true), 177.65, 0.01);
  EXPECT_NEAR(virial_overdensity(0.3, true), 101.1, 0.1);  // 337 times the mean density
  EXPECT_NEAR(virial_overdensity(0.3, false), 119.97, 0.1);
}

}  // namespace
}  // namespace maki
