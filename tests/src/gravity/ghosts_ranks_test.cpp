// Gravity with ghosts: accelerations and potentials are the same bits on one rank, on many, and over sites.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <string>

#include "host/let/local_essential_tree.hpp"
#include "kernels/tree/octree.hpp"
#include "src/gravity/site_agreement.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/sites/sites_of_ranks.hpp"
#include "tests/src/gravity/shared_set.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using testing::Set;
using Bits = std::vector<std::uint64_t>;

constexpr std::size_t kValues = 8;  // of a particle

// A set, and how it moves before each evaluation but the first.
struct Motion {
  Set set;
  GravityOptions options;
  int evaluations = 1;
  std::function<void(std::size_t, SourceParticle&)> move = [](std::size_t, SourceParticle&) {};
};

// Of each evaluation, the bits of all values of all particles.
struct Course {
  std::vector<Bits> bits;
  int rebuilds = 0;
};

// The same with particles of one place and mass in the order of their values.
Course by_place(const Course& course, const Set& set) {
  std::map<std::array<std::uint32_t, 4>, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < set.source.size(); ++i)
    places[std::bit_cast<std::array<std::uint32_t, 4>>(set.source[i])].push_back(i);
  Course ordered = course;
  for (Bits& bits : ordered.bits)
    for (const auto& [place, those] : places) {
      std::vector<std::array<std::uint64_t, kValues>> values(those.size());
      for (std::size_t k = 0; k < those.size(); ++k) std::copy_n(&bits[kValues * those[k]], kValues, values[k].begin());
      std::sort(values.begin(), values.end());
      for (std::size_t k = 0; k < those.size(); ++k) std::copy_n(values[k].begin(), kValues, &bits[kValues * those[k]]);
    }
  return ordered;
}

class GravityWithGhosts : public ::testing::Test {
 protected:
  template <class Owner>
  Course follow(Motion motion, const Communicator& all, const Communicator& ranks, SiteAgreement* steps,
                const Owner& owner) {
    Course course;
    const auto see = [&](const Gravity& gravity, const Particles& particles) {
      course.rebuilds += gravity.counts().rebuilt ? 1 : 0;
      const VectorArray &near = gravity.short_acceleration(), &far = gravity.long_acceleration();
      course.bits.push_back(testing::gather_bits(stream, all, motion.set, particles,
                                                 {&near.x, &near.y, &near.z, &gravity.short_potential(), &far.x, &far.y,
                                                  &far.z, &gravity.long_potential()}));
      fewest = std::min(fewest, static_cast<double>(particles.size()));
    };
    const auto move = [&](int e, std::size_t i, SourceParticle& p) {
      if (e > 0) motion.move(i, p);
    };
    testing::follow(stream, motion.set, motion.options, all, ranks, steps, owner, motion.evaluations, move, see);
    return course;
  }
  Course at_one_site(const Motion& motion, const Communicator& ranks) {
    return follow(motion, ranks, ranks, nullptr, testing::dealt(ranks));
  }
  Course over_sites(const Motion& motion, int sites) {
    const SitesOfRanks here(world, sites);
    SiteAgreement steps(*here.sites);
    const sites::Slabs even(sites, 0);
    const Course course = follow(motion, world, here.ranks, &steps,
                                 [&](std::size_t i) { return here.first_rank(even.site_of(motion.set.source[i].x)); });
    here.sites->close();
    return course;
  }
  // By the first rank alone, for all.
  Course on_one_rank(const Motion& motion) {
    Course course;
    if (world.rank() == 0) course = at_one_site(motion, Communicator::self());
    course.bits.resize(static_cast<std::size_t>(motion.evaluations), Bits(kValues * motion.set.source.size()));
    for (Bits& bits : course.bits) world.broadcast(bits.data(), bits.size() * sizeof bits[0], 0);
    world.broadcast(&course.rebuilds, sizeof course.rebuilds, 0);
    return course;
  }
  static void expect_same(const Course& found, const Course& expected, const std::string& where) {
    EXPECT_EQ(found.rebuilds, expected.rebuilds) << where;
    ASSERT_EQ(found.bits.size(), expected.bits.size());
    for (std::size_t e = 0; e < expected.bits.size(); ++e) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < expected.bits[e].size(); ++i)
        if (found.bits[e][i] != expected.bits[e][i])
          names.push_back("value " + std::to_string(i % kValues) + " of particle " + std::to_string(i / kValues));
      EXPECT_EQ(names.size(), 0u) << where << ", evaluation " << e << ", first of them " << names[0];
    }
  }
  // `ordered`: those of one place among each other.
  void expect_same_everywhere(const Motion& motion, int most_sites = 3, bool ordered = false) {
    const auto of = [&](const Course& course) { return ordered ? by_place(course, motion.set) : course; };
    const Course one = of(on_one_rank(motion));
    rebuilds = one.rebuilds;
    fewest = static_cast<double>(motion.set.source.size());
    expect_same(of(at_one_site(motion, world)), one, std::to_string(world.size()) + " ranks");
    fewest = smallest_of(world, fewest);
    for (int sites = 2; sites <= std::min(most_sites, world.size()); ++sites)
      expect_same(of(over_sites(motion, sites)), one, std::to_string(sites) + " sites");
  }

  const Stream& stream = test::test_stream();
  const Communicator world = Communicator::world();
  int rebuilds = 0;   // on one rank
  double fewest = 0;  // particles of a rank at one site
};

GravityOptions options_for(std::size_t particles, int fixed_reuse) {
  GravityOptions options = testing::periodic();
  options.mesh.mass_bits = 12;
  options.ghost_level = whole_cell_level(particles, kPeriodicMinLevel);
  options.fixed_reuse = fixed_reuse;
  return options;
}

// Clusters that the edges of the box cut, and some particles everywhere.
std::vector<SourceParticle> clusters_and_field(std::size_t n, unsigned seed) {
  auto set = testing::clustered_set(n, seed);
  for (SourceParticle& p : set) p.x += 0x70000000u, p.y += 0x90000000u, p.z += 0x84000000u;
  const auto field = testing::uniform_set(n / 4, seed);
  for (std::size_t i = 0; i < field.size(); ++i) set[4 * i] = field[i];
  return set;
}

// Up to 3e-3 of the box at once, in all directions.
void wander(std::size_t i, SourceParticle& p) {
  const auto random = static_cast<std::uint32_t>(i * 2654435761u);
  p.x += (random >> 8 & 0xffffffu) - 0x7fffffu;
  p.y += (random * 2654435761u >> 8 & 0xffffffu) - 0x7fffffu;
  p.z -= random >> 12;
}

Motion wandering(std::size_t n, int fixed_reuse, int evaluations) {
  return {Set(clusters_and_field(n, 4)), options_for(n, fixed_reuse), evaluations, wander};
}

TEST_F(GravityWithGhosts, TheSameBitsWhileParticlesMove) {
  expect_same_everywhere(wandering(7000, 3, 12));
  EXPECT_EQ(rebuilds, 4);
}

TEST_F(GravityWithGhosts, TheSameBitsWithNewListsEveryTime) {
  expect_same_everywhere(wandering(7000, 1, 3));
  EXPECT_EQ(rebuilds, 3);
}

// Lists are kept while particles go most of a cell of the mesh beyond the slab that they were in.
TEST_F(GravityWithGhosts, ParticlesBeyondTheirSlab) {
  const auto across = [](std::size_t i, SourceParticle& p) { p.x += i % 2 == 0 ? 0x00f00000u : 0xff100000u; };
  expect_same_everywhere({Set(clusters_and_field(7000, 8)), options_for(7000, 8), 9, across});
  EXPECT_EQ(rebuilds, 2);
}

// Lists that do not fit are made a batch at a time: where they are not kept anyhow that changes nothing.
TEST_F(GravityWithGhosts, ListsInBatches) {
  Motion motion = wandering(7000, 1, 3);
  const Course kept = on_one_rank(motion);
  motion.options.list_budget = 30000;
  expect_same_everywhere(motion);
  expect_same(on_one_rank(motion), kept, "without batches");
}

// Sites and ranks with next to nothing, or nothing.
TEST_F(GravityWithGhosts, AllInOneCorner) {
  auto corner = testing::uniform_set(7000, 5, 0, 0.04);
  for (SourceParticle& p : corner) p.x -= 0x01000000u, p.z -= 0x03000000u;
  expect_same_everywhere({Set(corner), options_for(corner.size(), 0), 2 * kGhostReuse, wander});
}

TEST_F(GravityWithGhosts, FewerParticlesThanRanks) {
  for (const std::size_t n : {1u, 2u, 5u}) {
    Motion motion{Set(testing::uniform_set(n, 6)), options_for(7000, 2), 5, wander};
    expect_same_everywhere(motion);
    if (n < static_cast<std::size_t>(world.size())) {
      EXPECT_EQ(fewest, 0);
    }
  }
}

// `places` of them with `crowd` particles each, and particles near by that differ from these in bits that no key has.
// All of a place stay together.
Motion crowded(std::size_t places, std::size_t crowd) {
  auto set = clusters_and_field(7000, 7);
  for (std::size_t place = 0; place < places; ++place)
    for (std::size_t k = 0; k < crowd; ++k) {
      const SourceParticle& there = set[place];
      set[places * (2 * k + 2) + place] = there;
      const std::uint32_t near = there.x ^ static_cast<std::uint32_t>(k + 1);
      if (k % 5 == 0) set[places * (2 * k + 1) + place] = {near, there.y, there.z ^ 3, there.mass};
    }
  const auto together = [](std::size_t, SourceParticle& p) { wander(p.x >> 12, p); };
  return {Set(set), options_for(set.size(), 2), 5, together};
}

TEST_F(GravityWithGhosts, SeveralParticlesInOnePlace) { expect_same_everywhere(crowded(100, 20)); }

// More of them than a group has room for: which of them is in which group is not fixed, what they get all together is.
TEST_F(GravityWithGhosts, ManyParticlesInOnePlace) { expect_same_everywhere(crowded(5, 300), 3, true); }

}  // namespace
}  // namespace maki
